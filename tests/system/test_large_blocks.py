import subprocess
import sys

import pytest

from gateway.system import large_blocks

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc can be told")

CLEARED_PAGES = """
import resource, sys
from gateway.system.large_blocks import reuse_large_blocks

if sys.argv[1] == "reuse":
    reuse_large_blocks()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def result():
    body = b"x" * 12_000_000
    return [body.decode("ascii"), body + b"y"]

result()
before = faults()
for _ in range(5):
    result()
print(faults() - before)
"""


def cleared_pages(what: str) -> int:
    done = subprocess.run([sys.executable, "-c", CLEARED_PAGES, what], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_of_large_blocks_is_used_again():
    pages_of_one_block = 12_000_000 // 4096
    if cleared_pages("return") < pages_of_one_block:
        pytest.skip("this C library or kernel gives back no pages, or larger ones")
    assert cleared_pages("reuse") < pages_of_one_block / 10


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(large_blocks.sys, "platform", "darwin")
    monkeypatch.setitem(sys.modules, "ctypes", None)  # importing it would fail
    large_blocks.reuse_large_blocks()

"""How a whole gateway ends: soon enough for its host, and with nothing left behind even when it is killed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gateway.upstream.transports.processes import HURRIED, ORPHAN_GRACE

ROOT = Path(__file__).resolve().parents[2]
RAW_STDIO = ROOT / "tests" / "servers" / "raw_stdio.py"
PATIENCE = 2.0
"""Seconds that the official Python SDK gives a server to end by itself."""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and named pipes are POSIX")


class Hosted:
    """A gateway over stdio, whose one upstream minds neither its input nor SIGTERM, and holds a pipe while it lives."""

    def __init__(self, folder: Path) -> None:
        arguments = [str(RAW_STDIO), "stubborn"]
        config = folder / "mcp-gateway.toml"
        config.write_text(
            f"[upstreams.raw]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(arguments)}\n"
            '[profiles.raw]\nextends = "passthrough"\n[gateway]\nprofile = "raw"\n',
            "utf-8",
        )
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        self.held = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve", "--config", str(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )
        client = {"name": "test", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        answer = self.ask("tools/call", {"name": "raw__hold", "arguments": {"pipe": str(pipe)}})
        assert answer["result"] == {"content": []}
        os.set_blocking(self.held, True)
        assert os.read(self.held, 1) == b"x"

    def ask(self, method: str, params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        while "id" not in (answer := json.loads(self.process.stdout.readline())):
            pass
        return answer

    def released(self) -> bool:
        """Wait until the upstream is gone."""
        return os.read(self.held, 1) == b""


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    gateway = Hosted(tmp_path)
    yield gateway
    gateway.process.kill()
    with suppress(BrokenPipeError):  # closing a pipe with something in it that nobody will read
        gateway.process.__exit__(None, None, None)
    os.close(gateway.held)


def test_the_graces_of_a_hurried_end_fit_into_a_hosts_patience() -> None:
    assert HURRIED.close + HURRIED.terminate + HURRIED.kill < PATIENCE
    assert HURRIED.close + ORPHAN_GRACE + HURRIED.kill < PATIENCE


@pytest.mark.timeout(60)
def test_a_gateway_whose_host_leaves_ends_its_upstreams(hosted: Hosted) -> None:
    assert hosted.process.stdin is not None
    hosted.process.stdin.close()
    assert hosted.process.wait(30) == 0
    assert hosted.released()


@pytest.mark.timeout(60)
def test_a_gateway_that_is_asked_to_end_does(hosted: Hosted) -> None:
    hosted.process.terminate()
    assert hosted.process.wait(30) == 0
    assert hosted.released()


@pytest.mark.timeout(60)
def test_a_gateway_that_is_killed_with_its_whole_group_leaves_nothing_behind(hosted: Hosted) -> None:
    os.killpg(hosted.process.pid, signal.SIGKILL)
    hosted.process.wait(30)
    assert hosted.released()

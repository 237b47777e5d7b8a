"""Hostile scripts: each is stopped with an error that says why, and the next script runs as if nothing had been."""

import sys
from dataclasses import replace

import psutil
import pytest

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.config.policy_settings import PolicySettings
from gateway.errors import ConfigError
from tests.routing.code_mode.conftest import HOST

pytestmark = pytest.mark.anyio

BOMB = "a = [0] * 10\nfor i in range(80): a = [a] * 10\n"
"""A list that takes no memory in a script, and more than there is where it is written out."""

STOPPED = {
    "import os\nos.fork()": "no attribute 'fork'",
    "import subprocess": "No module named 'subprocess'",
    "import socket": "No module named 'socket'",
    "import ctypes": "No module named 'ctypes'",
    "open('/etc/passwd').read()": "Permission denied",
    "import os\nprint(os.environ)": "not supported",
    "import os\nos.listdir('/')": "Permission denied",
    "().__class__.__bases__[0].__subclasses__()": "no attribute '__class__'",
    "while True: pass": "ran longer than 1 s",
    "try:\n    while True: pass\nexcept BaseException: pass": "ran longer than 1 s",
    "x = 3\nwhile True: x = x * x": "ran longer than 1 s",
    "x = []\nwhile True: x.append('x' * 1_000_000)": "more than 34 MB",
    "10 ** 10 ** 10": "more than 34 MB",
    "'x' * 10 ** 10": "more than 34 MB",
    "def f(): return f()\nf()": "maximum recursion depth",
    "print('x' * 10_000_000)": "printed more than 66 KB",
    "while True: print('x' * 1_000)": "printed more than 66 KB",
    f"{'(' * 5_000}1{')' * 5_000}": "too deeply nested",
    "x = = 1": "line 1",
    "for i in range(10_000): browser__words('x')": "at most 5 tool calls",
    "while True:\n    try: browser__words('x')\n    except RuntimeError: pass": "5 tool calls are allowed",
    "gateway_run('1')": "a script cannot start another",
    "gateway_view('x')": "for the model, not for scripts",
    "browser__wrds('x')": "did you mean 'browser__words'",
    "show(open_media('img_000000000000'))": "open_media",
    "show(open_media('../../etc/passwd'))": "open_media",
    "for i in range(600): show('x')": "at most 500 parts",
    "import time\ntime.sleep(100)": "longer than 4 s with its calls",
    "browser__wait(100)": "longer than 4 s with its calls",
    "read_bytes(browser__screenshot('http://x/1'))": "a script may read 100 bytes",
    "show(browser__screenshot('http://x/1'))": "a script may show at most 1.0 KB",
    "browser__words({1, 2})": "set cannot be an argument",
    "class A: pass\nbrowser__words(A())": "A cannot be an argument",
    "raise ValueError('\x1b]0;owned\x07')": "ValueError",
    f"{BOMB}show(a)": "may hold at most 100,000",
    f"{BOMB}browser__words(a)": "may hold at most 100,000",
    f"{BOMB}media(a)": "may hold at most 100,000",
    f"{BOMB}a": "may hold at most 100,000",
    "s = 'x' * 1_000_000\nshow([s] * 100)": "67,108,864 characters",
    "for i in range(500): show('')\n1": "at most 500 parts",
    "await browser__words('x')\nbrowser__words('x')['text']": "has to await each call",
}
LIMITS = {
    "run_time": 1,
    "total_time": 4,
    "memory": 32 * 1024 * 1024,
    "max_calls": 5,
    "max_read": 100,
    "max_shown": 1000,
}


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


async def test_each_is_stopped_and_says_why(opened):
    async with opened(**LIMITS) as host:
        host = host.as_(replace(HOST, profile="passthrough"))
        wrong = {}
        for code, why in STOPPED.items():
            said = await host.fails(code)
            if why not in said or "\x1b" in said:
                wrong[code[:80]] = said[-300:]
        assert not wrong
        assert await host.says("1 + 1") == "2"


async def test_no_worker_is_left_and_none_has_the_environment(opened, monkeypatch):
    monkeypatch.setenv("GATEWAY_TEST_SECRET", "do-not-tell")
    async with opened(run_time=2) as host:
        own = psutil.Process()
        before = {child.pid for child in own.children(recursive=True)}
        await host.fails("while True: pass")
        await host.says("1")
        assert {child.pid for child in own.children(recursive=True)} <= before


async def test_what_a_script_leaves_is_not_there_for_the_next(opened):
    async with opened(scripts_at_once=1) as host:
        await host.says("secret = 'mine'\n1")
        assert "'secret' is not defined" in await host.fails("secret")


async def test_policy_holds_inside_scripts(opened):
    rules = {
        "policy": PolicySettings.model_validate(
            {"rules": [{"name": "quiet", "effect": "deny", "tools": ["browser__words"]}]}
        )
    }
    async with opened(rules) as host:
        assert "not defined" in await host.fails("browser__words('x')")
        assert not host.calls


@pytest.mark.parametrize("code", ["", "  ", "x" * 100_001])
async def test_code_that_is_none_or_too_long_is_refused(opened, code):
    async with opened() as host:
        assert "script" in await host.fails(code)


def test_patterns_name_an_upstream():
    with pytest.raises(ValueError, match="has no upstream"):
        CodeModeSettings(tools=("screenshot",))


async def test_without_the_extra_it_cannot_be_enabled(opened, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with pytest.raises(ConfigError, match=r"code_mode\.enabled: .*not installed.*mcp-multimodal-gateway\[code\]"):
        async with opened():
            pass


async def test_a_result_larger_than_the_memory_of_a_script_stops_the_script_alone(opened):
    async with opened(memory="16MiB", max_text="64MiB") as host:
        said = await host.fails("text = 'x' * 9_000_000\nbrowser__words(text)")
        assert "of memory" in said
        assert await host.says("1 + 1") == "2"

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

KEY = "a = (0,) * 10\nfor i in range(80): a = (a,) * 10\n"
"""A tuple that takes no memory either, and longer than anyone has to be hashed, as the key of a dict is."""

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
    f"{KEY}raise ValueError({{a: 1}})": "monty",
    f"{KEY}print({{a: 1}})": "more than 34 MB",
    f"{KEY}import time\ntime.sleep({{a: 1}})": "TypeError",
    "a = 0\nfor i in range(10_000): a = [a]\nbrowser__words(a)": "deeper than 100 levels",
    "a = 0\nfor i in range(10_000): a = (a,)\nshow({a: 1})": "maximum recursion depth",
    "browser__words(10 ** 100_000)": "thousands of digits cannot be an argument",
    "browser__words({'a': [float('nan')]})": "nan cannot be an argument",
    "browser__words(-float('inf'))": "-inf cannot be an argument",
    "s = 'x' * 1_000_000\nbrowser__words([s] * 20)": "at most 17 MB",
    "show(*range(2_000))": "at most 1,000 values at once",
    "await browser__words('x')\nbrowser__words('x')['text']": "has to await each call",
}
NEVER_READ = (
    f"{KEY}show({{a: 1}})",
    f"{KEY}show({{a}})",
    f"{KEY}browser__words({{a: 1}})",
    f"{KEY}browser__words(**{{'text': {{a: 1}}}})",
    f"{KEY}await browser__words({{a: 1}})",
    f"{KEY}media({{a: 1}})",
    f"{KEY}find_tools({{a: 1}})",
    f"{KEY}open_media({{a: 1}})",
    f"{KEY}no_function({{a: 1}})",
    f"{KEY}gateway_run({{a: 1}})",
    f"{KEY}{{a: 1}}",
)
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


async def test_a_limit_that_is_reached_in_one_long_step_names_the_last_call(opened):
    async with opened(**{**LIMITS, "run_time": 0.5}) as host:
        for code in ("browser__words('x')\nwhile True: pass", "browser__words('x')\nx = 3\nwhile True: x = x * x"):
            said = await host.fails(f"print('seen')\n{code}")
            assert "seen" in said
            assert "ran longer than 0.5 s" in said
            assert "the last function that it called was at line 2" in said


async def test_values_that_take_for_ever_to_be_read_end_their_script(opened):
    async with opened(**{**LIMITS, "run_time": 0.3, "total_time": 60}) as host:
        host = host.as_(replace(HOST, profile="passthrough"))
        wrong = {}
        for code in NEVER_READ:
            line = code.count("\n") + 1
            words = f"failed at line {line}: it was ended: it took longer than 0.3 s to read the values"
            if words not in (said := await host.fails(code)):
                wrong[code] = said[-300:]
        assert not wrong
        assert not host.calls
        assert await host.says("1 + 1") == "2"


SAID = {
    "a = 0\nfor i in range(10_000): a = [a]\na": '["..."]',
    "a = [1]\na.append(a)\na": '[1,"[...]"]',
    "10 ** 100_000": '"an integer of thousands of digits"',
    "[float('nan'), float('-inf')]": '["nan","-inf"]',
    "{(1, 2): 1, None: 2, b'x': 3}": '"None":2',
    "browser__words({'\\ud800': '\\udfff'})": "ufffd",
    "show('\\ud800')": "\ufffd",
}
"""Values that JSON does not have, and what of them is said."""


async def test_values_that_json_does_not_have_are_written_in_words(opened):
    async with opened() as host:
        host = host.as_(replace(HOST, profile="passthrough"))
        wrong = {code: said[-200:] for code, words in SAID.items() if words not in (said := await host.says(code))}
        assert not wrong


async def test_what_a_script_had_printed_is_there_although_its_value_ended_it(opened):
    async with opened(run_time=1) as host:
        said = await host.fails(f"print('before')\nshow('shown')\nprint('after')\n{KEY}show({{a}})")
        assert said.splitlines()[:3] == ["before", "shown", "after"]


async def test_no_worker_is_left_and_none_has_the_environment(opened, monkeypatch):
    monkeypatch.setenv("GATEWAY_TEST_SECRET", "do-not-tell")
    async with opened(run_time=2) as host:
        own = psutil.Process()
        before = {child.pid for child in own.children(recursive=True)}
        await host.fails("while True: pass")
        await host.fails(f"{KEY}show({{a}})")
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
    with pytest.raises(ConfigError, match=r"code_mode\.enabled: .*not installed.*extra code: `.+\[code\]'?`"):
        async with opened():
            pass


async def test_a_result_larger_than_the_memory_of_a_script_stops_the_script_alone(opened):
    async with opened(memory="16MiB", max_text="64MiB") as host:
        said = await host.fails("text = 'x' * 9_000_000\nbrowser__words(text)")
        assert "of memory" in said
        assert await host.says("1 + 1") == "2"

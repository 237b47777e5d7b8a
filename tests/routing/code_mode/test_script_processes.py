"""The processes of scripts: how many there are, whose they are, and when they end."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import psutil
import pytest

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.routing.code_mode.script_run import ScriptRun
from gateway.sandbox.faults import ScriptFailed
from gateway.sandbox.sandbox import Functions, open_sandbox
from tests.routing.code_mode.conftest import HOST, texts
from tests.routing.code_mode.test_scripts import until

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]
COMPUTES = "x = 3\nwhile True: x = x * x"
NOTHING = Functions({}, {}, {})


def of_scripts(parent: psutil.Process) -> list[psutil.Process]:
    """The processes of scripts below this one: those of ours, and the interpreters."""
    found: list[psutil.Process] = []
    for child in parent.children(recursive=True):
        try:
            line = " ".join(child.cmdline())
        except psutil.Error:
            continue
        if "gateway.sandbox.worker" in line or "monty" in line:
            found.append(child)
    return found


def gateway_that_computes(folder: Path) -> "subprocess.Popen[bytes]":
    (folder / "mcp-gateway.toml").write_text('[code_mode]\nrun_time = "100s"\nmemory = "1GiB"\n', "utf-8")
    (folder / "script.py").write_text(COMPUTES, "utf-8")
    command = [sys.executable, "-m", "gateway", "run", "script.py", "--config", "mcp-gateway.toml"]
    return subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
async def test_they_end_with_a_gateway_that_is_killed(tmp_path: Path):
    gateway = gateway_that_computes(tmp_path)
    try:
        with anyio.fail_after(60):
            await until(lambda: len(of_scripts(psutil.Process(gateway.pid))) == 2)
        started = of_scripts(psutil.Process(gateway.pid))
        await anyio.sleep(0.5)  # it computes now
        assert all(process.is_running() for process in started)
    finally:
        os.kill(gateway.pid, signal.SIGKILL)
        gateway.wait()
    _, alive = await anyio.to_thread.run_sync(psutil.wait_procs, started, 10)
    assert not alive


async def test_they_end_with_a_host_that_cancels_while_its_script_computes():
    sandbox = open_sandbox(CodeModeSettings(run_time=100))
    own = psutil.Process()
    async with anyio.create_task_group() as group:
        group.start_soon(sandbox.run, COMPUTES, NOTHING, print, "ann")
        with anyio.fail_after(60):
            await until(lambda: len(of_scripts(own)) == 2)
        group.cancel_scope.cancel()
    assert not of_scripts(own)


async def test_one_caller_cannot_keep_the_others_out():
    sandbox = open_sandbox(CodeModeSettings(scripts_at_once=2, run_time=100))
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(sandbox.run, COMPUTES, NOTHING, print, "ann")
        with anyio.fail_after(60):
            await until(lambda: len(of_scripts(psutil.Process())) >= 4)
            assert await sandbox.run("1 + 1", NOTHING, print, "bob") == "2"
        assert len(of_scripts(psutil.Process())) <= 4
        group.cancel_scope.cancel()


async def test_of_a_hundred_scripts_at_once_those_that_cannot_wait_are_refused_in_words():
    sandbox = open_sandbox(CodeModeSettings(scripts_at_once=1))
    said: list[str] = []

    async def run() -> None:
        try:
            said.append(str(await sandbox.run("1 + 1", NOTHING, print, "ann")))
        except ScriptFailed as error:
            said.append(error.words)

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(run)
    assert said.count("2") == 17
    assert {words for words in said if words != "2"} == {
        "it was not started: too many scripts wait already; try again when some have ended"
    }


async def test_one_that_is_killed_costs_its_script_alone_and_is_logged(caplog):
    sandbox = open_sandbox(CodeModeSettings(run_time=100))
    own = psutil.Process()

    async def kill() -> None:
        with anyio.fail_after(60):
            await until(lambda: len(of_scripts(own)) == 2)
        next(process for process in of_scripts(own) if "gateway.sandbox" in " ".join(process.cmdline())).kill()

    async with anyio.create_task_group() as group:
        group.start_soon(kill)
        with pytest.raises(ScriptFailed, match="it was ended"):
            await sandbox.run(COMPUTES, NOTHING, print)
    assert not of_scripts(own)
    assert "a script was ended: its process ended with exit code" in caplog.text
    assert await sandbox.run("2", NOTHING, print) == "2"


@pytest.mark.parametrize("killed", ["gateway.sandbox.worker", "monty"])
async def test_one_that_is_killed_in_a_long_step_says_the_last_call_that_it_made(killed: str):
    sandbox = open_sandbox(CodeModeSettings(run_time=100))
    computes = anyio.Event()

    async def called(*_: object) -> None:
        computes.set()

    async def kill() -> None:
        with anyio.fail_after(60):
            await computes.wait()
        await anyio.sleep(0.3)
        ours = [each for each in of_scripts(psutil.Process()) if "gateway.sandbox.worker" in " ".join(each.cmdline())]
        found = ours if killed == "gateway.sandbox.worker" else [child for each in ours for child in each.children()]
        assert len(found) == 1
        found[0].kill()

    async with anyio.create_task_group() as group:
        group.start_soon(kill)
        with pytest.raises(ScriptFailed, match=r"it was ended: .*; the last function that it called was at line 2"):
            await sandbox.run(
                f"first = 1\nsite__look(first)\n{COMPUTES}", Functions({"site__look": called}, {}, {}), print
            )
    assert not of_scripts(psutil.Process())


async def test_an_error_of_ours_is_one_error_of_the_script_and_logged(opened, monkeypatch, caplog):
    async def broken(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(ScriptRun, "_called", broken)
    async with opened() as host:
        said = await host.fails("browser__words('x')")
        assert "RuntimeError: browser__words: the gateway failed; its log says why" in said
        assert await host.says("await show('x')") == "x"
        caught = "try:\n    await browser__words('x')\nexcept RuntimeError:\n    print('caught')"
        assert await host.says(caught) == "caught"
    assert "KeyError: 'ours'" in caplog.text


async def test_without_its_interpreter_a_script_fails_with_what_mends_it(tmp_path, monkeypatch, caplog):
    (tmp_path / "pydantic_monty.py").write_text("raise ImportError('broken')", "utf-8")
    sandbox = open_sandbox(CodeModeSettings())
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ScriptFailed, match=r"no script can be run now: ImportError: broken; to mend it, install .*\[c"):
        await sandbox.run("1", NOTHING, print)
    assert "a script could not be run" in caplog.text


async def test_searching_for_functions_counts_as_a_call(opened):
    async with opened(max_calls=3) as host:
        search = "for i in range(3): find_tools('words')\n"
        assert await host.says(f"{search}print('three')") == "three"
        assert "at most 3 tool calls" in await host.fails(f"{search}find_tools('words')")
        assert "at most 3 tool calls" in await host.fails(f"{search}browser__words('x')")


async def test_a_handle_is_shown_only_to_a_script_that_was_given_it(opened):
    async with opened() as host:
        handle = await host.says("print(browser__screenshot('http://x/1').handle)")
        assert "image" not in [block["type"] for block in (await host.run(f"show('{handle}')"))["content"]]
        stranger = host.as_(replace(HOST, principal="eve", session="s2"))
        assert "open_media" in texts(await stranger.run(f"show(open_media('{handle}'))"))

"""The process that waits for the next script: when there is one, and that it serves one script alone."""

import anyio
import psutil
import pytest

from gateway.config.code_mode_settings import CodeModeSettings
from gateway.sandbox.faults import ScriptFailed
from gateway.sandbox.sandbox import open_sandbox
from gateway.sandbox.spare_process import SpareProcess
from tests.routing.code_mode.test_script_processes import NOTHING, of_scripts
from tests.routing.code_mode.test_scripts import until

pytestmark = pytest.mark.anyio


async def spare(processes: SpareProcess) -> psutil.Process:
    """Wait for the process that is ready, and return it."""
    own = psutil.Process()
    with anyio.fail_after(60):  # it is there before it can be taken
        await until(lambda: processes._process is not None and len(of_scripts(own)) == 1)
    return of_scripts(own)[0]


async def test_there_is_one_after_the_first_script_and_none_at_the_end():
    sandbox = open_sandbox(CodeModeSettings())
    async with sandbox.keeping_spare():
        await anyio.sleep(0.5)
        assert not of_scripts(psutil.Process())
        assert await sandbox.run("1 + 1", NOTHING, print) == "2"
        first = await spare(sandbox._processes)
        assert await sandbox.run("1 + 2", NOTHING, print) == "3"
        second = await spare(sandbox._processes)
        assert first.pid != second.pid
        assert not first.is_running()
    assert not of_scripts(psutil.Process())


async def test_one_that_was_killed_costs_no_script():
    sandbox = open_sandbox(CodeModeSettings())
    async with sandbox.keeping_spare():
        await sandbox.run("1", NOTHING, print)
        killed = await spare(sandbox._processes)
        killed.kill()
        with anyio.fail_after(60):
            await until(lambda: not of_scripts(psutil.Process()))
        await anyio.sleep(0.2)
        assert await sandbox.run("1 + 1", NOTHING, print) == "2"
    assert not of_scripts(psutil.Process())


async def test_it_ends_when_there_are_no_scripts_for_a_while():
    processes = SpareProcess(idle=1.5)
    async with processes.kept():
        processes.want()
        await spare(processes)
        with anyio.fail_after(60):
            await until(lambda: not of_scripts(psutil.Process()))
        await anyio.sleep(0.5)
        assert not of_scripts(psutil.Process())
        processes.want()
        await spare(processes)
    assert not of_scripts(psutil.Process())


async def test_a_script_that_takes_too_long_with_its_calls_is_told_where_it_was():
    sandbox = open_sandbox(CodeModeSettings(total_time=2, run_time=1))
    with pytest.raises(ScriptFailed, match="the last function that it called was at line 3"):
        await sandbox.run("import time\nx = 1\ntime.sleep(60)", NOTHING, print)

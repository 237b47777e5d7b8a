"""The supervisor, with small programs in place of workers: how they start, end, and are started again."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from gateway.serving.workers.supervisor import Supervisor, how_ended
from gateway.serving.workers.worker import WorkerPlan
from gateway.system.processes import start_process

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="--workers is POSIX's")]

SERVING = 'import json, sys\nplan = json.loads(input())\nprint(\'{"serving": true, "ready": true}\', flush=True)\n'
"""The beginning of a worker that serves at once."""

Make = Callable[..., Supervisor]


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not holds():  # noqa: ASYNC110 - processes decide on it
            await anyio.sleep(0.01)


@pytest.fixture
def lines() -> list[str]:
    """What workers have written to stderr, and "(all serve)" once they do."""
    return []


@pytest.fixture
def make(tmp_path: Path, lines: list[str]) -> Make:
    """Makes supervisors of workers that run this program."""

    def make(program: str, count: int = 2, start_seconds: float = 30.0) -> Supervisor:
        (tmp_path / "worker.py").write_text(program)

        def plan(number: int, all_ready: bool) -> WorkerPlan:
            return WorkerPlan(number, count, 0, 1, str(tmp_path), all_ready)

        return Supervisor(
            count,
            [sys.executable, str(tmp_path / "worker.py")],
            plan,
            lines.append,
            lambda: lines.append("(all serve)"),
            start_seconds=start_seconds,
            pauses=(0.01, 0.02),
        )

    return make


async def test_one_that_cannot_start_ends_all_with_its_code_and_its_words(make: Make, lines: list[str]) -> None:
    assert await make("import sys; sys.exit('error: there is no such key')").run() == 1
    assert await make("import sys; print('bad', file=sys.stderr); sys.exit(2)").run() == 2
    assert lines == ["error: there is no such key", "bad"], "it is said once: the others are not started"


async def test_a_second_one_that_cannot_start_ends_the_first(make: Make, lines: list[str]) -> None:
    only_first = SERVING + "sys.exit(3) if plan['number'] == 2 else sys.stdin.read()\n"
    assert await make(only_first.replace("print(", "plan['number'] == 1 and print(")).run() == 3
    assert "(all serve)" not in lines


async def test_one_that_never_serves_is_ended_in_time(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    began = time.monotonic()
    assert await make("import time; time.sleep(600)", start_seconds=0.5).run() == 1
    assert time.monotonic() - began < 20
    assert "has not served within 0.5 s" in caplog.text


async def test_one_that_ends_is_started_again_and_knows_that_the_others_are_there(
    make: Make, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    mortal = SERVING + (
        "print(plan['number'], plan['all_ready'], file=sys.stderr, flush=True)\n"
        "if plan['number'] == 1: sys.stdin.read()\n"
        "sys.stdin.readline() if not plan['all_ready'] else None\n"
        "sys.exit(7)\n"
    )
    supervisor = make(mortal)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run)
        await until(lambda: supervisor.restarts >= 3)
        assert supervisor.stop()
        assert not supervisor.stop()
    assert "worker 2 has ended with code 7: it is started again in 0.02 s" in caplog.text
    assert lines.count("2 True") >= 2
    assert lines.count("1 False") == 1
    assert lines.count("(all serve)") == 1


async def test_one_that_does_not_mind_its_end_is_ended_by_force(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.serving.workers.supervisor._ENDING_SECONDS", 0.4)
    ignoring = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    stubborn = f"{ignoring}{SERVING}time.sleep(600)\n"
    supervisor = make(stubborn, count=1)
    with anyio.move_on_after(60) as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            await until(lambda: supervisor.all_ready)
            tasks.cancel_scope.cancel()
    assert not scope.cancelled_caught
    assert not [one for one in supervisor.running.values() if one.process.returncode is None]


@pytest.mark.parametrize(
    ("code", "said"),
    [(0, "has ended with code 0"), (-9, "was ended by SIGKILL"), (-250, "was ended by signal 250")],
)
def test_how_one_has_ended_is_said_in_words(code: int, said: str) -> None:
    assert how_ended(code) == said


async def test_one_that_is_just_being_started_is_told_to_stop(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first_ends = "import os\nif os.path.exists('ended'): sys.stdin.read()\nopen('ended', 'w').close()\n"
    supervisor = make(SERVING + f"import os; os.chdir({str(tmp_path)!r})\n" + first_ends, count=1)

    async def start(*given: Any, **options: Any) -> Process:
        process = await start_process(*given, **options)
        if supervisor.restarts:
            supervisor.stop()
        return process

    monkeypatch.setattr("gateway.serving.workers.supervisor.start_process", start)
    with anyio.fail_after(60):
        assert await supervisor.run() == 0
    assert supervisor.restarts == 1


async def test_one_that_is_being_started_while_the_last_gets_ready_hears_of_it(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: list[str]
) -> None:
    program = f"""
import json, os, sys, time
plan = json.loads(input())
os.chdir({str(tmp_path)!r})
def await_file(name):
    while not os.path.exists(name): time.sleep(0.01)
serving = lambda **more: print(json.dumps({{"serving": True, **more}}), flush=True)
if plan["number"] == 2:
    serving()
    open("second", "w").close()
    await_file("again")
    serving(ready=True)
elif not os.path.exists("again"):
    serving(ready=True)
    await_file("second")
    sys.exit(1)
else:
    print("all ready:", plan["all_ready"], file=sys.stderr, flush=True)
sys.stdin.read()
"""
    supervisor = make(program)

    async def start(*given: Any, **options: Any) -> Process:
        if supervisor.restarts:
            (tmp_path / "again").touch()
            await until(lambda: supervisor.all_ready)
        return await start_process(*given, **options)

    monkeypatch.setattr("gateway.serving.workers.supervisor.start_process", start)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(supervisor.run)
        await until(lambda: any(line.startswith("all ready") for line in lines))
        supervisor.stop()
    assert "all ready: True" in lines

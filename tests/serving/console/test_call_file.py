"""Past calls in a file: there after a restart, within bounds, and readable to nobody else; bad files are refused."""

import sqlite3
import stat
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.errors import ConfigError
from gateway.runtime import run_gateway
from gateway.serving.console.call_file import Bounds, CallFile, EndedCall
from gateway.serving.console.console import open_console
from gateway.system.background_tasks import background_tasks
from gateway.telemetry.call_history import Body, CallHistory, PastCall
from gateway.telemetry.calls import CallRecord
from tests.serving.console.conftest import Shown, nothing_to_report, shown

pytestmark = pytest.mark.anyio
WIDE = Bounds(1_000, 1_000_000, 3_600.0)


def ended(number: int, *, began: float = 2e9, text: str = "x") -> EndedCall:
    """A call with this text in its result."""
    caller = Caller(revision="2025-11-25", client_name="codex", principal="ann")
    call = PastCall(number, began, CallRecord(caller, "codex", f"tool{number}"), "ann", "1.0", is_running=False)
    call.record.outcome, call.record.seconds = "tool_error", 1.5
    return EndedCall(call, {"a": number}, {"content": [{"type": "text", "text": text}]})


@asynccontextmanager
async def kept(path: Path, upstream: dict[str, Any], **console: Any) -> AsyncGenerator[Shown]:
    """The console of a gateway that keeps its calls in a file."""
    async with shown({"app": upstream}, console={"calls": str(path), **console}) as one:
        await one.enter()
        yield one


def server(scripted: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": "the answer"}]}
    return scripted({"tools": [{"name": "do", "inputSchema": {"type": "object"}}], "results": {"do": result}})


async def test_calls_are_there_after_a_restart(
    tmp_path: Path, scripted: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    path, upstream = tmp_path / "deep" / "calls.sqlite3", server(scripted)
    async with kept(path, upstream) as one:
        await one.call("app__do", password="hunter22", word="here")
        await one.call("app__do", word="there")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not any(b"hunter22" in file.read_bytes() for file in path.parent.iterdir())
    async with kept(path, upstream) as one:
        assert [row["number"] for row in (await one.json("/calls"))["calls"]] == [2, 1]
        call = await one.json("/calls/1")
        assert (call["tool"], call["host"], call["outcome"], call["is_kept"]) == ("app__do", "claude-code", "ok", True)
        assert "the answer" in str(call["parts"])
        assert "here" in call["arguments"]["text"]
        assert "hunter22" not in str(call)
        seen = await one.json("/calls/1/seen/codex")
        assert "the answer" in str(seen["through"])
        await one.call("app__do")
        assert (await one.json("/calls"))["calls"][0]["number"] == 3


async def test_a_relative_path_is_one_beside_the_configuration_file(tmp_path: Path) -> None:
    from gateway.config.load_settings import load_settings

    config = tmp_path / "mcp-gateway.toml"
    config.write_text('[console]\ncalls = "calls.sqlite3"\nmax_age = "1d"\n')
    settings = load_settings(config).settings.console
    assert (settings.calls, settings.max_age) == (tmp_path / "calls.sqlite3", 86_400.0)


def test_a_file_keeps_no_more_calls_than_it_may(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls", Bounds(3, 1_000_000, 3_600.0))
    removed = file.write([ended(number) for number in range(1, 6)])
    assert sorted(removed.dropped) == [1, 2]
    assert [call.number for call in file.calls()] == [3, 4, 5]
    assert file.read(2) == (None, None)
    assert file.read(3)[0] == {"a": 3}


def test_a_file_keeps_no_more_bytes_than_it_may(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls", Bounds(100, 1_000, 3_600.0))
    removed = file.write([ended(number, text="y" * 300) for number in range(1, 6)])
    assert list(removed.emptied) == [1, 2, 3]
    assert [call.is_whole for call in file.calls()] == [False, False, False, True, True]
    file.write([ended(6, text="y" * 2_000)])  # larger than all of them may be
    assert [call.is_whole for call in file.calls()] == [False, False, False, True, True, False]
    file.close()
    again = CallFile(tmp_path / "calls", Bounds(100, 400, 3_600.0))  # less than was allowed before
    assert [call.is_whole for call in again.calls()] == [False] * 4 + [True, False]


def test_a_file_keeps_no_older_calls_than_it_may(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls", WIDE)
    assert list(file.write([ended(1, began=1_000.0), ended(2)]).dropped) == [1]
    assert [call.number for call in file.calls()] == [2]


def test_what_a_line_says_is_what_was_written(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls", WIDE)
    file.write([ended(7)])
    [call] = file.calls()
    assert (call.number, call.began, call.principal, call.client_version) == (7, 2e9, "ann", "1.0")
    assert (call.record.tool, call.record.outcome, call.record.seconds) == ("tool7", "tool_error", 1.5)
    assert call.result == {"content": [{"type": "text", "text": "x"}]}


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE things (a)")


def newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_text("no database, and long enough to be one " * 50), "not a database"),
        (newer, "newer version"),
        (foreign, "another program's"),
        (lambda path: path.mkdir(), "cannot be used"),
    ],
)
def test_a_file_that_is_not_one_of_ours_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "calls"
    make(path)
    before = (path.read_bytes(), path.stat().st_mode) if path.is_file() else None
    with pytest.raises(ConfigError, match=words) as told:
        CallFile(path, WIDE)
    assert told.value.where == "console.calls"
    assert "move the file away" in str(told.value.remedy)
    if before is not None:
        assert (path.read_bytes(), path.stat().st_mode) == before


def test_two_gateways_cannot_keep_their_calls_in_one_file(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls", WIDE)
    with pytest.raises(ConfigError, match="another gateway"):
        CallFile(tmp_path / "calls", WIDE)
    file.close()
    CallFile(tmp_path / "calls", WIDE).close()


def test_a_damaged_line_costs_that_call_alone(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls", WIDE)
    file.write([ended(1), ended(2), ended(3)])
    file.close()
    with sqlite3.connect(tmp_path / "calls") as connection:
        connection.execute("UPDATE calls SET line = CAST(x'22ff22' AS TEXT) WHERE number = 1")
        connection.execute("UPDATE bodies SET body = '{' WHERE number = 2")
    again = CallFile(tmp_path / "calls", WIDE)
    assert [call.number for call in again.calls()] == [2, 3]
    assert again.read(2) == (None, None)


def test_the_last_call_that_was_read_is_not_read_again_and_is_forgotten_when_it_is_dropped(tmp_path: Path) -> None:
    file = CallFile(tmp_path / "calls", Bounds(2, 100_000, 1e10))
    file.write([ended(1), ended(2)])
    first = file.read(1)
    assert first[1] is not None
    assert file.read(1) is first
    assert file.read(2)[1] is not None
    assert file.read(1) is not first
    file.write([ended(3)])
    assert file.read(1) == (None, None)


async def test_large_results_of_earlier_runs_are_read_beside_the_event_loop(
    tmp_path: Path, scripted: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    upstream = server(scripted)
    async with kept(tmp_path / "calls", upstream) as one:
        await one.call("app__do", text="z" * 3_000)
    async with kept(tmp_path / "calls", upstream) as one:
        call = one.console.history.find(1)
        assert call is not None
        assert call.has_result
        read, threads = call.read, list[threading.Thread]()
        assert read is not None

        def noting() -> Body:
            threads.append(threading.current_thread())
            return read()

        call.read = noting
        for path in ("/calls/1", "/calls/1/seen/default", "/api/calls/1/result", "/edit/codex"):
            threads.clear()
            assert (await one.get(path)).status_code == 200
            assert threads[0] is not threading.main_thread(), path
        threads.clear()
        await one.get("/calls")
        await one.get("/")
        assert threads == []


async def test_a_file_that_cannot_be_used_is_told_whenever_the_console_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "calls"
    foreign(path)
    settings = Settings.model_validate({"upstreams": {}, "console": {"calls": str(path)}})
    async with run_gateway(settings) as gateway, background_tasks() as tasks:
        for _ in range(2):
            with pytest.raises(ConfigError, match="another program's"):
                await open_console(gateway, nothing_to_report, tasks)


async def test_the_gateway_goes_on_while_past_calls_are_read(tmp_path: Path) -> None:
    path = tmp_path / "calls"
    file = CallFile(path, Bounds(1_000, 1_000_000, 1e10))
    file.write([ended(1, began=1_000.0)])
    file.close()
    settings = Settings.model_validate({"upstreams": {}, "console": {"calls": str(path)}})
    async with run_gateway(settings) as gateway, background_tasks() as tasks, anyio.create_task_group() as group:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")  # the old call cannot be removed before this ends
            group.start_soon(open_console, gateway, nothing_to_report, tasks)
            with anyio.fail_after(2):  # less than SQLite waits before it gives up
                for _ in range(20):
                    await anyio.sleep(0.01)
            assert gateway.router.telemetry.history is None
            other.execute("COMMIT")


async def test_what_the_file_drops_is_forgotten_in_the_list(
    tmp_path: Path, scripted: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    upstream = server(scripted)
    async with kept(tmp_path / "calls", upstream) as one:
        await one.call("app__do", text="z" * 3_000)
    async with kept(tmp_path / "calls", upstream, max_bytes=4_000) as one:
        assert (await one.json("/calls/1"))["is_kept"]
        await one.call("app__do", text="z" * 3_000)
        history = one.console.history
    assert [call.is_whole for call in history.newest_first()] == [
        True,
        False,
    ]  # it was written at the end at the latest


def test_a_history_goes_on_after_the_calls_of_earlier_runs() -> None:
    history = CallHistory(10, 10)
    history.restore([ended(41).call])
    caller = Caller(revision="2025-11-25", client_name="codex")
    assert history.begin(CallRecord(caller, "codex", "next"), caller).number == 42

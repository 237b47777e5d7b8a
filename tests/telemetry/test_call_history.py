from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.model.caller import Caller
from gateway.core.model.json_size import size_of
from gateway.telemetry import Telemetry
from gateway.telemetry.call_history import CallHistory, PastCall

ALICE = Caller(
    client_name="claude-code", client_version="2.1", principal="alice", headers={"authorization": "Bearer s"}
)


def call(telemetry: Telemetry, tool: str = "pics__draw", result: Any = None, arguments: Any = None) -> None:
    result = {"content": []} if result is None else result
    with telemetry.call(ALICE, "default", tool, {}) as record:
        record.asked(arguments, size_of(arguments))
        record.answered(result, size_of(result))


def keeping(max_calls: int = 10, max_bytes: int = 10_000) -> tuple[Telemetry, CallHistory]:
    telemetry = Telemetry()
    telemetry.history = history = CallHistory(max_calls, max_bytes)
    return telemetry, history


def test_without_a_history_nothing_stays_of_a_call() -> None:
    telemetry = Telemetry()
    with telemetry.call(ALICE, "default", "pics__draw", {}) as record:
        record.asked({"a": 1}, size_of({"a": 1}))
        record.answered({"content": []}, size_of({}))
    assert (record.kept_arguments, record.kept_result, record.kept_bytes) == (None, None, 0)


def test_a_call_is_kept_with_what_went_in_and_came_out() -> None:
    telemetry, history = keeping()
    call(telemetry, result={"content": [{"type": "text", "text": "x"}]}, arguments={"city": "Bern"})
    (kept,) = history.newest_first()
    assert (kept.number, kept.principal, kept.client_version, kept.is_running) == (1, "alice", "2.1", False)
    assert kept.arguments == {"city": "Bern"}
    assert kept.result == {"content": [{"type": "text", "text": "x"}]}
    assert history.find(1) is kept
    assert history.find(2) is None
    assert "s3cr3t" not in repr(kept)


def test_a_call_is_there_while_it_runs_and_after_it_failed() -> None:
    telemetry, history = keeping()
    told: list[tuple[int, bool]] = []
    stop = history.listen(lambda one: told.append((one.number, one.is_running)))

    def fails() -> None:
        with telemetry.call(ALICE, "default", "pics__draw", {}):
            assert [one.is_running for one in history.newest_first()] == [True]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    (running,) = history.newest_first()
    assert (running.is_running, running.record.outcome, running.result) == (False, "failed", None)
    stop()
    stop()
    call(telemetry)
    assert told == [(1, True), (1, False)]


def test_the_oldest_calls_make_room() -> None:
    telemetry, history = keeping(max_calls=3)
    for number in range(5):
        call(telemetry, f"pics__{number}")
    assert [one.record.tool for one in history.newest_first()] == ["pics__4", "pics__3", "pics__2"]
    assert history.bytes == sum(one.size for one in history.newest_first())


def test_the_oldest_results_make_room_and_their_calls_stay() -> None:
    telemetry, history = keeping(max_bytes=2_500)
    for _ in range(4):
        call(telemetry, result={"content": [{"type": "text", "text": "x" * 500}]})
    kept = list(history.newest_first())
    assert [one.is_whole for one in kept] == [True, True, False, False]
    assert kept[-1].result is None
    assert history.bytes <= 2_500


def test_many_small_values_weigh_what_they_take() -> None:
    telemetry, history = keeping(max_bytes=50_000)
    call(telemetry, result={"content": [], "structuredContent": [0] * 1_000})
    (kept,) = history.newest_first()
    assert not kept.is_whole
    assert history.bytes == 0


def test_a_call_that_outlives_the_history_is_not_kept() -> None:
    telemetry, history = keeping(max_calls=1)
    with telemetry.call(ALICE, "default", "slow", {}) as record:
        call(telemetry, "quick")
        record.answered({"content": []}, size_of({}))
    assert [one.record.tool for one in history.newest_first()] == ["quick"]
    assert record.kept_result is None
    assert history.bytes == next(history.newest_first()).size


def test_there_are_not_any_number_of_listeners() -> None:
    _, history = keeping()
    stops = [history.listen(lambda _: None) for _ in range(64)]
    with pytest.raises(OverflowError):
        history.listen(lambda _: None)
    stops[0]()
    history.listen(lambda _: None)


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=60))
def test_what_is_counted_is_what_is_there(steps: list[tuple[int, bool]]) -> None:
    telemetry, history = keeping(max_calls=7, max_bytes=3_000)
    open_calls: list[tuple[Any, Any]] = []
    for weight, is_end in steps:
        if is_end and open_calls:
            context, record = open_calls.pop(0)
            result = {"content": ["x" * 40 * weight]}
            record.answered(result, size_of(result))
            context.__exit__(None, None, None)
        else:
            context = telemetry.call(ALICE, "default", "tool", {})
            open_calls.append((context, context.__enter__()))
    kept: list[PastCall] = [one for one in history.newest_first() if not one.is_running]
    assert len(history) <= 7
    assert history.bytes == sum(one.size for one in kept) <= 3_000
    assert all((one.result is None) == (not one.is_whole) for one in kept)
    for context, _ in open_calls:
        context.__exit__(None, None, None)

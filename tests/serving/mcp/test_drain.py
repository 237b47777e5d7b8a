"""What a request is answered that is cancelled because the gateway stops."""

from contextlib import nullcontext
from typing import Any

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from gateway.serving.http.limited_connection import LAST
from gateway.serving.mcp.drain import Drain, TellingOfTheEnd, what_ends
from gateway.serving.mcp.running_requests import RunningRequests

pytestmark = pytest.mark.anyio


async def cancelled(*, stops: bool, has_begun: bool) -> list[Any]:
    """Return the statuses that a request gets which is cancelled in the middle."""
    sent: list[Any] = []
    drain = Drain(RunningRequests(), 1.0)
    if stops:
        drain.ask()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await anyio.sleep_forever()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message.get("status", bytes(message.get("body", b""))))

    async with anyio.create_task_group() as tasks:
        scope: Scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
        tasks.start_soon(TellingOfTheEnd(app, drain), scope, receive, send)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    return sent


async def test_a_request_that_the_end_cancels_is_answered_by_an_error_that_says_so() -> None:
    status, body = await cancelled(stops=True, has_begun=False)
    assert status == 502
    assert b"nobody knows whether it was carried out" in body


async def test_an_answer_that_has_begun_is_left_alone() -> None:
    assert await cancelled(stops=True, has_begun=True) == [200]
    assert await cancelled(stops=False, has_begun=False) == []


@pytest.mark.parametrize("outlives", [False, True], ids=["all end", "a call outlives the grace"])
async def test_the_door_is_closed_again_when_answers_that_had_begun_are_complete(
    outlives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.serving.mcp.drain._LAST_SECONDS", 0.2)
    drain, running_at = Drain(running := RunningRequests(), 0.2), list[int]()

    async def close_door() -> None:
        running_at.append(running.number)

    with anyio.fail_after(30), running.one() if outlives else nullcontext():
        drain.ask()
        await drain.over(close_door)
    assert running_at == [int(outlives)] * 2


@pytest.mark.parametrize("is_told", [False, True], ids=["by this", "by the connection"])
async def test_the_end_of_a_connection_is_said_once(is_told: bool) -> None:
    drain, sent = Drain(RunningRequests(), 1.0), list[Any]()
    drain.ask()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"Connection", b"keep-alive")]})

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message["headers"])

    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [],
        **({LAST: True} if is_told else {}),
    }
    await TellingOfTheEnd(app, drain)(scope, receive, send)
    assert sent == [[] if is_told else [(b"connection", b"close")]]


@pytest.mark.parametrize(
    ("running", "words"),
    [
        (0, "no request is running, and there are no new sessions"),
        (1, "1 running request has up to 30 s to end, and there are no new sessions"),
        (2, "2 running requests have up to 30 s to end, and there are no new sessions"),
    ],
)
def test_what_is_waited_for_is_said(running: int, words: str) -> None:
    assert what_ends(running, 30.0) == words

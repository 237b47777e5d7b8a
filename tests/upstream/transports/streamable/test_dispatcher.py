"""The dispatcher by itself: the options of a request, and its end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream.transports.streamable.dispatcher import HttpDispatcher, open_streamable
from tests.upstream.transports.streamable.scripted import Asked, Server, response, served

pytestmark = pytest.mark.anyio


async def silent(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
    """Never answer."""


@asynccontextmanager
async def running(server: Server) -> AsyncGenerator[HttpDispatcher]:
    async def refuse(*_: Any) -> dict[str, Any]:
        raise MCPError(-32601, "no")

    async def ignore(*_: Any) -> None:
        pass

    with anyio.fail_after(30):
        async with (
            served(server) as origin,
            open_streamable(UpstreamSettings(url=f"{origin}/mcp")) as dispatcher,
            anyio.create_task_group() as tasks,
        ):
            await tasks.start(dispatcher.run, refuse, ignore)
            yield dispatcher
            tasks.cancel_scope.cancel()


async def test_a_request_has_a_time_limit_and_is_then_cancelled() -> None:
    server = Server(silent)
    async with running(server) as dispatcher:
        with pytest.raises(MCPError) as caught:
            await dispatcher.send_raw_request("tools/call", {}, {"timeout": 0.1, "request_id": "seven"})
        assert caught.value.error.code == REQUEST_TIMEOUT
        await server.until(lambda: "notifications/cancelled" in server.names())
        assert server.asked[-1].message["params"]["requestId"] == "seven"


async def test_a_request_that_must_not_be_cancelled_is_not() -> None:
    server = Server(silent)
    async with running(server) as dispatcher:
        with pytest.raises(MCPError):
            await dispatcher.send_raw_request("tools/call", {}, {"timeout": 0.1, "cancel_on_abandon": False})
        await dispatcher.notify("notifications/roots/list_changed", None)
        assert "notifications/cancelled" not in server.names()


async def test_an_id_can_be_chosen_but_not_twice_at_once() -> None:
    server = Server(silent)
    async with running(server) as dispatcher, anyio.create_task_group() as tasks:
        seven: CallOptions = {"request_id": "7"}
        tasks.start_soon(dispatcher.send_raw_request, "tools/call", {}, seven)
        await server.until(lambda: "tools/call" in server.names())
        with pytest.raises(ValueError, match="in flight"):
            await dispatcher.send_raw_request("tools/call", {}, {"request_id": 7})
        assert server.asked[0].message["id"] == "7"
        tasks.cancel_scope.cancel()


async def test_the_end_of_the_connection_is_that_of_every_request() -> None:
    server = Server(silent)
    codes: list[int] = []

    async def call(dispatcher: HttpDispatcher) -> None:
        try:
            await dispatcher.send_raw_request("tools/call", {})
        except MCPError as error:
            codes.append(error.error.code)

    async with anyio.create_task_group() as tasks, running(server) as dispatcher:
        for _ in range(3):
            tasks.start_soon(call, dispatcher)
        await server.until(lambda: server.names().count("tools/call") == 3)
    assert codes == [CONNECTION_CLOSED] * 3
    with pytest.raises(MCPError, match="closed"):
        await dispatcher.send_raw_request("tools/call", {})


async def test_the_answer_may_come_over_the_standing_stream() -> None:
    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method != "GET":
            return
        await server.until(lambda: "tools/call" in server.names())
        call = next(each for each in server.asked if each.name == "tools/call")
        body = b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n' % call.message["id"]
        writer.write(response(body, kind="text/event-stream"))

    server = Server(script, session="s1")
    async with running(server) as dispatcher:
        await dispatcher.send_raw_request("initialize", {"protocolVersion": "2025-11-25"})
        await dispatcher.notify("notifications/initialized", None)
        assert await dispatcher.send_raw_request("tools/call", {}) == {"content": []}


@pytest.mark.parametrize("polled", ["waiting", "asking again"])
async def test_a_call_that_is_polled_for_is_cancelled_as_well(polled: str) -> None:
    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "POST":
            retry = b"retry: 60000\n" if polled == "waiting" else b"retry: 1\n"
            writer.write(response(retry + b"id: one\ndata:\n\n", kind="text/event-stream"))

    server = Server(script, session="s1")
    async with running(server) as dispatcher:
        await dispatcher.send_raw_request("initialize", {"protocolVersion": "2025-11-25"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(dispatcher.send_raw_request, "tools/call", {}, CallOptions(request_id="seven"))
            sign = "tools/call" if polled == "waiting" else "GET after one"
            await server.until(lambda: sign in [each.name for each in server.asked])
            await anyio.sleep(0.1)
            tasks.cancel_scope.cancel()
        await server.until(lambda: "notifications/cancelled" in server.names())
        assert server.asked[-1].message["params"]["requestId"] == "seven"


async def test_an_event_id_that_no_header_can_have_is_not_asked_for() -> None:
    async def script(server: Server, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.method == "POST":
            events = b"retry: 1\nid: one\ndata:\n\nid: t\x01wo\ndata:\n\n"
            writer.write(response(events, kind="text/event-stream"))
        else:
            call = next(each for each in server.asked if each.name == "tools/call")
            body = b'data: {"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n\n' % call.message["id"]
            writer.write(response(body, kind="text/event-stream"))

    server = Server(script)
    async with running(server) as dispatcher:
        assert await dispatcher.send_raw_request("tools/call", {}) == {"content": []}
        assert "GET after one" in [each.name for each in server.asked]

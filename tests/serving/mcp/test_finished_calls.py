"""A host that cancels each call once it is answered (opencode does) costs nothing, on any transport."""

import json
import logging

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.sse import sse_client

ACCEPT = {"Accept": "application/json, text/event-stream"}
CALLS = 20


def finished(wire, request_id):
    return wire.notification("notifications/cancelled", {"requestId": request_id, "reason": "done"})


@pytest.mark.parametrize("era", ["handshake", "modern"])
def test_over_stdio(stdio_host, wire, era):
    host = stdio_host()
    if era == "handshake":
        assert host.ask(wire.initialize())["result"]
        host.send(wire.notification("notifications/initialized"))
    for number in range(1, CALLS + 1):
        params = {"name": "echo", "arguments": {"n": number}}
        asked = wire.request(f"call-{number}" if number % 2 else number, "tools/call", params)
        if era == "modern":
            asked["params"] = wire.modern(params)
        assert host.ask(asked)["result"]["structuredContent"]["params"]["arguments"] == {"n": number}
        host.send(finished(wire, asked["id"]))
    host.leave()
    code, left, said = host.ended()
    assert (code, left, said.strip()) == (0, b"", "service closed")


@pytest.mark.anyio
async def test_over_streamable_http(served, wire, caplog):
    with anyio.fail_after(30), caplog.at_level(logging.INFO):
        async with served() as gateway, httpx2.AsyncClient() as client:
            url = f"{gateway.url}/mcp"
            opening = await client.post(url, json=wire.initialize("2025-11-25"), headers=ACCEPT)
            headers = {
                **ACCEPT,
                "Mcp-Session-Id": opening.headers["mcp-session-id"],
                "MCP-Protocol-Version": "2025-11-25",
            }
            for number in range(1, CALLS + 1):
                params = {"name": "echo", "arguments": {"n": number}}
                response = await client.post(url, json=wire.request(number, "tools/call", params), headers=headers)
                messages = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
                assert [message["id"] for message in messages] == [number]
                told = await client.post(url, json=finished(wire, number), headers=headers)
                assert told.status_code == 202
            assert "cancelled" not in gateway.service.events
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "sse"])
async def test_of_the_sdks_client(served, caplog, mode):
    with anyio.fail_after(30), caplog.at_level(logging.INFO):
        async with served() as gateway:
            where = sse_client(f"{gateway.url}/sse") if mode == "sse" else f"{gateway.url}/mcp"
            async with Client(where, mode="legacy", cache=None) as client:
                for number in range(CALLS):
                    called = await client.call_tool("echo", {"n": number})
                    assert called.structured_content["params"]["arguments"] == {"n": number}
                    # Its requests are counted from 0: all of these are over, or were never made.
                    for request_id in (number, str(number), number + 1_000):
                        params = types.CancelledNotificationParams(request_id=request_id, reason="done")
                        await client.session.send_notification(types.CancelledNotification(params=params))
            assert "cancelled" not in gateway.service.events
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

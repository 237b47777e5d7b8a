"""Two people with tokens of their own behind one gateway, over every transport: neither reaches what is the other's."""

import asyncio
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.runtime import run_gateway
from gateway.serving.access import Access, Identified
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http

pytestmark = pytest.mark.anyio

SERVER = """
from typing import Annotated
from pydantic import Field
from mcp.server.mcpserver import MCPServer
server = MCPServer("one", instructions="The instructions of {name}.")
@server.tool()
def say() -> str:
    return "{name} says"
@server.tool()
def at(region: Annotated[str, Field(json_schema_extra={{"x-mcp-header": "{name}"}})]) -> str:
    return region
@server.resource("{name}://text")
def text() -> str:
    return "the text of {name}"
server.run()
"""
TOKENS = {"alice": "alice-alice-alice-alice", "bob": "bob-bob-bob-bob-bob-bob"}
CAROL = "carol-carol-carol-carol"
"""The token of one who reaches everything."""
REACHES = {"alice": "red", "bob": "blue"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
}
MODES = ("auto", "legacy", "sse")


@asynccontextmanager
async def gateway(folder: Path):
    """Serves two upstreams, red for Alice and blue for Bob; gives the url and who may do what."""
    upstreams = {}
    for name in REACHES.values():
        (folder / f"{name}.py").write_text(SERVER.format(name=name), "utf-8")
        upstreams[name] = UpstreamSettings(command=sys.executable, args=(str(folder / f"{name}.py"),))
    tokens = {name: TokenSettings(token=token, upstreams=(REACHES[name],)) for name, token in TOKENS.items()}
    tokens["carol"] = TokenSettings(token=CAROL)
    settings = Settings(upstreams=upstreams, http=HttpSettings(port=0), access=AccessSettings(tokens=tokens))
    async with run_gateway(settings, over_http=True) as running:
        for name in upstreams:
            assert await running.router.upstreams[name].ready(60)
        access = Access(settings.http, settings.access)
        identity = Identity("gateway", "1", others=running.router.introductions)
        app = http_app(running.router, settings.http, identity, access=access, telemetry=running.router.telemetry)
        async with anyio.create_task_group() as tasks:
            bound = asyncio.Queue[int]()
            tasks.start_soon(partial(serve_http, app, settings.http, on_bound=bound.put_nowait))
            yield f"http://127.0.0.1:{await bound.get()}", access
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def host(url: str, mode: str, token: str):
    headers = {"Authorization": f"Bearer {token}"}
    if mode == "sse":
        async with Client(sse_client(f"{url}/sse", headers=headers), mode="legacy", cache=None) as client:
            yield client
        return
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", MODES)
async def test_each_has_the_upstreams_of_the_token(tmp_path, mode):
    with anyio.fail_after(60):
        async with gateway(tmp_path) as (url, _):
            for person, own in REACHES.items():
                other = next(each for each in REACHES.values() if each != own)
                async with host(url, mode, TOKENS[person]) as client:
                    told: Any = client.instructions
                    assert f"instructions of {own}" in told
                    assert other not in told
                    tools = [tool.name for tool in (await client.list_tools()).tools]
                    assert [name for name in tools if not name.startswith("gateway_")] == [f"{own}__say", f"{own}__at"]
                    assert [str(each.uri) for each in (await client.list_resources()).resources] == [f"{own}://text"]
                    answer = await client.call_tool(f"{own}__say", {})
                    assert answer.content[0].model_dump()["text"] == f"{own} says"
                    with pytest.raises(Exception, match=r"no tool named .*say'") as refused:
                        await client.call_tool(f"{other}__say", {})
                    assert "not there now" not in str(refused.value)
                    with pytest.raises(Exception, match="no upstream has the resource"):
                        await client.read_resource(f"{other}://text")


async def test_nobody_gets_into_the_session_of_another(tmp_path):
    with anyio.fail_after(60):
        async with gateway(tmp_path) as (url, _), httpx2.AsyncClient() as http:
            begin = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "host", "version": "1"},
                },
            }
            accept = {"Accept": "application/json, text/event-stream"}
            alice, bob = ({**accept, "Authorization": f"Bearer {token}"} for token in TOKENS.values())
            opened = await http.post(f"{url}/mcp", json=begin, headers=alice)
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
            listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            assert (await http.post(f"{url}/mcp", json=ready, headers={**alice, **session})).status_code == 202
            stolen = await http.post(f"{url}/mcp", json=listing, headers={**bob, **session})
            assert stolen.status_code == 404
            assert (await http.request("DELETE", f"{url}/mcp", headers={**bob, **session})).status_code == 404
            async with http.stream("GET", f"{url}/mcp", headers={**bob, **session}) as stream:
                assert stream.status_code == 404
            own = await http.post(f"{url}/mcp", json=listing, headers={**alice, **session})
            assert "red__say" in own.text


async def test_a_removed_token_opens_nothing_from_then_on(tmp_path):
    with anyio.fail_after(60):
        async with gateway(tmp_path) as (url, access), httpx2.AsyncClient() as http:
            headers = {"Authorization": f"Bearer {TOKENS['alice']}"}
            assert (await http.get(f"{url}/", headers=headers)).status_code == 200
            access.reconfigure(AccessSettings(tokens={"bob": TokenSettings(token=TOKENS["bob"])}))
            refused = await http.get(f"{url}/", headers=headers)
            assert (refused.status_code, refused.json()) == (401, {"error": "the bearer token is wrong"})
            access.reconfigure(AccessSettings())
            assert (await http.get(f"{url}/")).status_code == 401


async def test_only_who_reaches_all_upstreams_is_told_of_them_by_probes_and_metrics(tmp_path):
    with anyio.fail_after(60):
        async with gateway(tmp_path) as (url, _), httpx2.AsyncClient() as http:
            alice, carol = ({"Authorization": f"Bearer {token}"} for token in (TOKENS["alice"], CAROL))
            assert (await http.get(f"{url}/readyz", headers=alice)).json() == {"ready": True}
            assert list((await http.get(f"{url}/readyz", headers=carol)).json()["upstreams"]) == ["red", "blue"]
            refused = await http.get(f"{url}/metrics", headers=alice)
            assert refused.status_code == 403
            assert "blue" not in refused.text
            told = await http.get(f"{url}/metrics", headers=carol)
            assert (told.status_code, "blue" in told.text) == (200, True)


async def test_of_those_whom_a_verifier_knows_only_admins_are_told_of_all_upstreams(tmp_path):
    class Known:
        async def verify(self, token):
            return {"person": Identified("person"), "admin": Identified("admin", is_admin=True)}.get(token)

    with anyio.fail_after(60):
        async with gateway(tmp_path) as (url, access), httpx2.AsyncClient() as http:
            access.add(Known())
            person, admin = ({"Authorization": f"Bearer {token}"} for token in ("person", "admin"))
            assert (await http.get(f"{url}/readyz", headers=person)).json() == {"ready": True}
            assert (await http.get(f"{url}/metrics", headers=person)).status_code == 403
            assert list((await http.get(f"{url}/readyz", headers=admin)).json()["upstreams"]) == ["red", "blue"]
            assert (await http.get(f"{url}/metrics", headers=admin)).status_code == 200


async def test_the_streams_of_a_removed_token_end(tmp_path):
    alice = {"Authorization": f"Bearer {TOKENS['alice']}", "Accept": "application/json, text/event-stream"}
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "host", "version": "1"}}
    listen = {"_meta": META, "notifications": {"toolsListChanged": True}}
    modern = {**alice, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}

    def message(method, params):
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}

    with anyio.fail_after(60):
        async with gateway(tmp_path) as (url, access), httpx2.AsyncClient(base_url=url, timeout=60) as http:
            opened = await http.post("/mcp", json=message("initialize", begin), headers=alice)
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
            async with (
                http.stream("GET", "/mcp", headers={**alice, **session}) as streamed,
                http.stream("GET", "/sse", headers=alice) as sse,
                http.stream("POST", "/mcp", headers=modern, json=message("subscriptions/listen", listen)) as listening,
            ):
                for stream in (streamed, sse, listening):
                    assert stream.status_code == 200
                access.reconfigure(AccessSettings(tokens={"bob": TokenSettings(token=TOKENS["bob"])}))
                for stream in (streamed, sse, listening):
                    text = b"".join([part async for part in stream.aiter_bytes()])
            assert b"no longer valid" in text


async def test_a_header_is_wanted_only_of_those_who_are_offered_the_tool(tmp_path):
    async def asked(http, token, method, params):
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if params else {}),
        }
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        return await http.post("/mcp", json=message, headers=headers)

    with anyio.fail_after(60):
        async with gateway(tmp_path) as (url, _), httpx2.AsyncClient(base_url=url) as http:
            for token in TOKENS.values():
                assert (await asked(http, token, "tools/list", {})).status_code == 200
            call = {"name": "blue__at", "arguments": {"region": "eu"}}
            own = await asked(http, TOKENS["bob"], "tools/call", call)
            assert (own.status_code, "region" in own.text) == (400, True)
            others = await asked(http, TOKENS["alice"], "tools/call", call)
            assert "no tool named" in others.text
            assert "region" not in others.text

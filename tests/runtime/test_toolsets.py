"""Toolsets over HTTP: chosen by path, header and token, over every transport, with real servers and clients."""

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
from gateway.config.toolset_settings import ToolsetSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.runtime import run_gateway
from gateway.serving.access import Access
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http

pytestmark = pytest.mark.anyio

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("one", instructions="The instructions of {name}.")
@server.tool()
def say() -> str:
    return "{name} says"
@server.tool()
def erase() -> str:
    return "{name} is erased"
server.run()
"""
TOKENS = {"all": "all-all-all-all-all", "blue": "blue-blue-blue-blue"}
MODES = ("auto", "legacy", "sse")
SAYS = ["red__say", "blue__say"]


@asynccontextmanager
async def gateway(folder: Path):
    """Serves two upstreams, red and blue; gives the url and the gateway."""
    upstreams: dict[str, UpstreamSettings] = {}
    for name in ("red", "blue"):
        (folder / f"{name}.py").write_text(SERVER.format(name=name), "utf-8")
        upstreams[name] = UpstreamSettings(command=sys.executable, args=(str(folder / f"{name}.py"),))
    tokens = {"all": TokenSettings(token=TOKENS["all"]), "blue": TokenSettings(token=TOKENS["blue"], toolset="blue")}
    toolsets = {"says": ToolsetSettings(tools=("*__say",)), "blue": ToolsetSettings(upstreams=("blue",))}
    access_settings = AccessSettings(tokens=tokens)
    settings = Settings(upstreams=upstreams, toolsets=toolsets, http=HttpSettings(port=0), access=access_settings)
    async with run_gateway(settings, over_http=True) as running:
        for name in upstreams:
            assert await running.router.upstreams[name].ready(60)
        router = running.router
        identity = Identity("gateway", "1", others=router.introductions)
        access = Access(settings.http, settings.access)
        names = router.profile_names
        app = http_app(
            router, settings.http, identity, access=access, profile_names=names, toolsets=lambda: router.toolsets
        )
        async with anyio.create_task_group() as tasks:
            bound = asyncio.Queue[int]()
            tasks.start_soon(partial(serve_http, app, settings.http, on_bound=bound.put_nowait))
            yield f"http://127.0.0.1:{await bound.get()}", running
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def host(url: str, mode: str, token: str, path: str = "", toolset: str | None = None):
    headers = {"Authorization": f"Bearer {TOKENS[token]}", **({"X-MCP-Toolset": toolset} if toolset else {})}
    if mode == "sse":
        async with Client(sse_client(f"{url}/sse{path}", headers=headers), mode="legacy", cache=None) as client:
            yield client
        return
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"{url}/mcp{path}", http_client=http), mode=mode, cache=None) as client,
    ):
        yield client


async def offered(client: Any) -> list[str]:
    names = [tool.name for tool in (await client.list_tools()).tools]
    return [name for name in names if not name.startswith("gateway_")]


@pytest.mark.parametrize("mode", MODES)
async def test_the_list_and_the_calls_are_those_of_the_toolset(tmp_path, mode):
    with anyio.fail_after(90):
        async with gateway(tmp_path) as (url, _):
            for path, toolset in (("/auto/says", None), ("/codex/says", None), ("", "says"), ("/codex", "says")):
                async with host(url, mode, "all", path, toolset) as client:
                    assert await offered(client) == SAYS
                    answer = await client.call_tool("blue__say", {})
                    assert answer.content[0].model_dump()["text"] == "blue says"
                    with pytest.raises(Exception, match="no tool named 'blue__erase'"):
                        await client.call_tool("blue__erase", {})
            async with host(url, mode, "all", "/auto/blue") as client:
                assert client.instructions is not None
                assert "instructions of blue" in client.instructions
                assert "red" not in client.instructions


@pytest.mark.parametrize("mode", MODES)
async def test_the_toolset_of_a_token_holds_whatever_its_host_chooses(tmp_path, mode):
    with anyio.fail_after(90):
        async with gateway(tmp_path) as (url, _):
            async with host(url, mode, "blue") as client:
                assert await offered(client) == ["blue__say", "blue__erase"]
            async with host(url, mode, "blue", "/auto/says") as client:
                assert await offered(client) == ["blue__say"]
                with pytest.raises(Exception, match="no tool named 'red__say'"):
                    await client.call_tool("red__say", {})


async def test_one_that_does_not_exist_is_refused_with_the_names_of_the_others(tmp_path):
    begin = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with anyio.fail_after(90):
        async with gateway(tmp_path) as (url, _), httpx2.AsyncClient() as http:
            headers = {"Authorization": f"Bearer {TOKENS['all']}", "Accept": "application/json, text/event-stream"}
            in_path = await http.post(f"{url}/mcp/auto/sys", json=begin, headers=headers)
            assert in_path.status_code == 404
            assert "there is no toolset 'sys'; did you mean 'says'? there are: says, blue" in in_path.text
            in_header = await http.post(f"{url}/mcp", json=begin, headers={**headers, "X-MCP-Toolset": "x" * 9_000})
            assert in_header.status_code == 400
            assert len(in_header.text) < 500
            assert (await http.post(f"{url}/mcp/nobody/says", json=begin, headers=headers)).status_code == 404
            assert (await http.post(f"{url}/mcp/auto/says/more", json=begin, headers=headers)).status_code == 404


async def test_a_reload_changes_the_toolset_of_hosts_that_are_connected(tmp_path):
    with anyio.fail_after(90):
        async with gateway(tmp_path) as (url, running), host(url, "legacy", "all", "/auto/says") as client:
            assert await offered(client) == SAYS
            toolsets = {"says": ToolsetSettings(tools=("red__say",)), "blue": ToolsetSettings(upstreams=("blue",))}
            running.apply(running.settings.model_copy(update={"toolsets": toolsets}))
            assert await offered(client) == ["red__say"]
            with pytest.raises(Exception, match="no tool named 'blue__say'"):
                await client.call_tool("blue__say", {})

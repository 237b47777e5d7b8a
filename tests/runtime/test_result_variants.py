"""Hosts that choose the forms of results, and servers that offer them (SEP-3279): over HTTP, with real servers."""

import asyncio
import base64
import io
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from PIL import Image

from gateway.config.experimental_settings import ExperimentalSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.results.output_variants import REVISION
from gateway.runtime import Gateway, run_gateway
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "variants_server.py"
META = "io.modelcontextprotocol/"
TODAY = "2026-07-28"
MODEL = {"audience": "assistant", "format": "content"}
MODEL_DATA = {"audience": "assistant", "format": "structured"}
USER = {"audience": "user", "format": "content"}
PROGRAM = {"audience": "programmatic", "format": "structured"}
PAGE = {"audience": "io.modelcontextprotocol/ui", "format": "structured"}

PLAIN = """
import base64, io, sys
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from PIL import Image as Pixels
server = MCPServer("plain")
@server.tool()
def count(of: str = "x") -> dict[str, int]:
    return {"count": 37}
@server.tool(structured_output=False)
def photo() -> list:
    data = io.BytesIO()
    Pixels.new("RGB", (3000, 2000), (9, 99, 200)).save(data, "PNG")
    return ["a photo", Image(data=data.getvalue(), format="png")]
@server.tool()
def fails() -> dict[str, int]:
    raise ToolError("no such record")
server.run()
"""


class Host:
    """A host over Streamable HTTP that writes its own requests."""

    def __init__(self, http: httpx2.AsyncClient, url: str, running: Gateway) -> None:
        self._http = http
        self._url = url
        self.running = running

    async def ask(
        self, method: str, params: dict[str, Any] | None = None, revision: str = REVISION, *, pages: bool = False
    ) -> dict[str, Any]:
        """Return the response, whatever it is."""
        extensions = {f"{META}ui": {"mimeTypes": ["text/html;profile=mcp-app"]}} if pages else {}
        extensions[f"{META}tasks"] = {}
        envelope = {
            f"{META}protocolVersion": revision,
            f"{META}clientInfo": {"name": "chooser", "version": "1"},
            f"{META}clientCapabilities": {"extensions": extensions},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": envelope}}
        headers = {
            "MCP-Protocol-Version": revision,
            "Mcp-Method": method,
            "Accept": "application/json, text/event-stream",
            **({"Mcp-Name": params["name"]} if params and "name" in params else {}),
        }
        got = await self._http.post(self._url, json=body, headers=headers)
        text = got.text
        if got.headers["content-type"].startswith("text/event-stream"):
            text = [line for line in text.splitlines() if line.startswith("data: {")][-1].removeprefix("data: ")
        return json.loads(text)

    async def call(self, name: str, *chosen: dict[str, str], **others: Any) -> dict[str, Any]:
        """Return the result of a call."""
        params: dict[str, Any] = {"name": name, "arguments": {}}
        if chosen:
            params["requestedOutputs"] = list(chosen)
        answer = await self.ask("tools/call", params, **others)
        assert "result" in answer, answer
        return answer["result"]

    async def tools(self, **others: Any) -> dict[str, dict[str, Any]]:
        answer = await self.ask("tools/list", **others)
        return {tool["name"]: tool for tool in answer["result"]["tools"]}


@asynccontextmanager
async def gateway(folder: Path, *, chosen: bool = True, **servers: tuple[str, ...]) -> AsyncGenerator[Host]:
    upstreams: dict[str, UpstreamSettings] = {}
    if not servers:
        (folder / "plain.py").write_text(PLAIN, "utf-8")
        servers = {"plain": (str(folder / "plain.py"),), "forms": (str(SERVER), "--log", str(folder / "log"))}
    for name, arguments in servers.items():
        upstreams[name] = UpstreamSettings(command=sys.executable, args=arguments)
    experimental = ExperimentalSettings(result_variants=chosen)
    settings = Settings(upstreams=upstreams, http=HttpSettings(port=0), experimental=experimental)
    async with run_gateway(settings, over_http=True) as running:
        for name in upstreams:
            await running.router.upstreams[name].ready(60)
        identity = Identity("gateway", "1", newer=(REVISION,) if chosen else ())
        app = http_app(running.router, settings.http, identity)
        async with anyio.create_task_group() as tasks, httpx2.AsyncClient(timeout=60) as http:
            bound = asyncio.Queue[int]()
            tasks.start_soon(partial(serve_http, app, settings.http, on_bound=bound.put_nowait))
            yield Host(http, f"http://127.0.0.1:{await bound.get()}/mcp", running)
            tasks.cancel_scope.cancel()


def forms(tool: dict[str, Any]) -> list[str]:
    return [f"{each['audience']}/{each['format']}" for each in tool["outputVariants"]]


def by_form(result: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{each['audience']}/{each['format']}": each.get("content", each.get("structuredContent"))
        for each in result["outputs"]
    }


async def test_a_host_gets_the_forms_that_it_chooses_of_a_server_of_today(tmp_path: Path):
    async with gateway(tmp_path) as host:
        found = (await host.ask("server/discover"))["result"]
        assert found["supportedVersions"] == [TODAY, REVISION]
        assert f"{META}tasks" not in found["capabilities"]["extensions"]
        tools = await host.tools()
        assert forms(tools["plain__count"]) == ["assistant/content", "user/content", "programmatic/structured"]
        assert tools["plain__count"]["outputVariants"][2]["schema"]["type"] == "object"
        assert forms(tools["plain__photo"]) == ["assistant/content", "user/content"]
        assert not any("outputSchema" in tool for tool in tools.values())

        result = await host.call("plain__count")
        assert set(result) >= {"outputs", "resultType"}
        assert not {"content", "structuredContent"} & set(result)
        (only,) = result["outputs"]
        assert {key: only[key] for key in MODEL} == MODEL
        assert "37" in only["content"][0]["text"]

        data = await host.call("plain__count", PROGRAM)
        assert data["outputs"] == [{**PROGRAM, "structuredContent": {"count": 37}}]


async def test_the_user_is_shown_the_picture_whole_and_the_model_one_of_its_size(tmp_path: Path):
    async with gateway(tmp_path) as host:
        result = by_form(await host.call("plain__photo", USER, MODEL))
        sizes = {
            form: [
                Image.open(io.BytesIO(base64.b64decode(block["data"]))).size
                for block in content
                if block["type"] == "image"
            ]
            for form, content in result.items()
        }
        assert sizes["user/content"] == [(3000, 2000)]
        assert max(sizes["assistant/content"][0]) <= 2000


async def test_a_server_that_offers_forms_is_asked_for_what_is_needed(tmp_path: Path):
    async with gateway(tmp_path) as host:
        assert host.running.router.upstreams["forms"].revision == REVISION
        tools = await host.tools()
        assert forms(tools["forms__records"]) == [
            "assistant/content",
            "assistant/structured",
            "user/content",
            "programmatic/structured",
        ]
        result = await host.call("forms__records", PROGRAM, USER)
        assert by_form(result) == {
            "programmatic/structured": {"count": 37, "for": "program"},
            "user/content": [{"type": "text", "text": "a table, for the user"}],
        }
        assert by_form(await host.call("forms__records", MODEL_DATA)) == {
            "assistant/structured": {"count": 37, "for": "model"}
        }
        # A host of today gets what its model reads, as it would from a server of today.
        old = await host.call("forms__records", revision=TODAY)
        assert "37 records, for the model" in old["content"][0]["text"]
        assert "outputs" not in old
        listed = (await host.tools(revision=TODAY))["forms__records"]
        assert "outputVariants" not in listed
        asked = [json.loads(line).get("requestedOutputs") for line in (tmp_path / "log").read_text().splitlines()]
        assert asked == [[MODEL, PROGRAM, USER], [MODEL, MODEL_DATA], [MODEL, MODEL_DATA]]


async def test_what_cannot_be_given_is_refused_and_never_replaced(tmp_path: Path):
    async with gateway(tmp_path) as host:

        async def refused(name: str, chosen: Any) -> dict[str, Any]:
            params = {"name": name, "arguments": {}, "requestedOutputs": chosen}
            return (await host.ask("tools/call", params))["error"]

        for chosen in ([MODEL_DATA], [PAGE], [MODEL, MODEL], [], "all", [{"audience": 1}]):
            assert (await refused("plain__count", chosen))["code"] == -32602, chosen
        told = await refused("plain__fails", [PROGRAM])
        assert (told["code"], "no such record" in told["message"]) == (-32603, True)
        failed = await host.call("plain__fails", PROGRAM, MODEL)
        assert failed["isError"] is True
        assert list(by_form(failed)) == ["assistant/content"]
        assert (await refused("nobody__has_it", [MODEL]))["code"] == -32602


async def test_header_and_envelope_have_to_agree(tmp_path: Path):
    async with gateway(tmp_path, plain=(str(SERVER),)) as host:
        ask = host._http.post  # pyright: ignore[reportPrivateUsage]
        envelope = {f"{META}protocolVersion": TODAY, f"{META}clientCapabilities": {}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": envelope}}
        for version, inside in ((REVISION, TODAY), (TODAY, REVISION)):
            body["params"] = {"_meta": {**envelope, f"{META}protocolVersion": inside}}
            headers = {
                "MCP-Protocol-Version": version,
                "Mcp-Method": "tools/list",
                "Accept": "application/json, text/event-stream",
            }
            got = await ask(host._url, json=body, headers=headers)  # pyright: ignore[reportPrivateUsage]
            assert (got.status_code, "error" in got.json()) == (400, True)
        for sent in (b"[" * 100_000, b"\xff", b'{"params": [1]}', b'{"params": {"_meta": {"a": 1e999}}}'):
            got = await ask(host._url, content=sent, headers=headers | {"MCP-Protocol-Version": REVISION})  # pyright: ignore[reportPrivateUsage]
            assert got.status_code == 400


async def test_a_server_that_breaks_the_proposal_is_not_used(tmp_path: Path):
    async with gateway(tmp_path, bad=(str(SERVER), "--faulty"), only=(str(SERVER), "--revisions", REVISION)) as host:
        tools = await host.tools()
        assert [name for name in tools if "__records" in name] == ["only__records"]
        assert "outputVariants" in (host.running.router.upstreams["bad"].cause or "")


async def test_without_the_setting_nothing_of_it_is_there(tmp_path: Path):
    async with gateway(tmp_path, chosen=False) as host:
        found = (await host.ask("server/discover", revision=TODAY))["result"]
        assert found["supportedVersions"] == [TODAY]
        refusal = (await host.ask("tools/list"))["error"]
        assert refusal["code"] == -32022
        assert host.running.router.upstreams["forms"].revision == TODAY
        tools = await host.tools(revision=TODAY)
        assert not any("outputVariants" in tool for tool in tools.values())
        result = await host.call("forms__records", PROGRAM, revision=TODAY)
        assert "outputs" not in result
        # What a host of today says that means nothing there is passed on, as it always was.
        (asked,) = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
        assert asked["requestedOutputs"] == [PROGRAM]

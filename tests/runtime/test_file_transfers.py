"""Files that hosts send and fetch beside the protocol (SEP-2631): over HTTP, with a real server and a real store."""

import asyncio
import base64
import hashlib
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

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.content_settings import ContentSettings
from gateway.config.experimental_settings import ExperimentalSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.config.store_settings import StoreSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.links.file_transfers import METHODS, FileTransfers
from gateway.content.links.links import Links
from gateway.content.store import MemoryStore
from gateway.errors import FileRefused
from gateway.runtime import run_gateway
from gateway.serving.access import Access
from gateway.serving.content.file_upload import file_routes
from gateway.serving.content.routes import content_routes
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http

pytestmark = pytest.mark.anyio

SERVER = """
import base64, io
from typing import Annotated
from mcp.server.mcpserver import Image, MCPServer
from PIL import Image as Pixels
from pydantic import Field
PICTURE = {"contentEncoding": "base64", "contentMediaType": "image/*"}
server = MCPServer("eyes")
@server.tool(structured_output=False)
def measure(photo: Annotated[str, Field(json_schema_extra=PICTURE)]) -> str:
    size = Pixels.open(io.BytesIO(base64.b64decode(photo))).size
    return f"{size[0]} by {size[1]}"
@server.tool(structured_output=False)
def report() -> list:
    data = io.BytesIO()
    Pixels.new("RGB", (4000, 3000), (9, 99, 200)).save(data, "PNG")
    return ["a report", Image(data=data.getvalue(), format="png")]
server.run()
"""
TOKENS = {"ann": "ann-ann-ann-ann-ann", "bob": "bob-bob-bob-bob-bob"}
META = "io.modelcontextprotocol/"


class Host:
    """A host over Streamable HTTP that can send and fetch files."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url

    async def ask(self, method: str, params: dict[str, Any], who: str = "ann", *, files: bool = True) -> dict[str, Any]:
        declared = {"files": {"upload": True, "download": True, "transports": ["https"]}} if files else {}
        envelope = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": declared}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope}}
        headers = {
            "Authorization": f"Bearer {TOKENS[who]}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            "Accept": "application/json, text/event-stream",
            **({"Mcp-Name": params["name"]} if method == "tools/call" else {}),
        }
        got = await self.http.post(self.url, json=body, headers=headers)
        text = got.text
        if got.headers["content-type"].startswith("text/event-stream"):
            text = [line for line in text.splitlines() if line.startswith("data: {")][-1].removeprefix("data: ")
        return json.loads(text)

    async def place(self, who: str = "ann", **announced: Any) -> dict[str, Any]:
        return (await self.ask("files/authorizeUpload", announced, who))["result"]

    async def send(self, place: dict[str, Any], content: bytes) -> httpx2.Response:
        upload = place["upload"]
        return await self.http.request(upload["method"], upload["url"], headers=upload["headers"], content=content)

    async def measured(self, uri: str, who: str = "ann") -> dict[str, Any]:
        return await self.ask("tools/call", {"name": "eyes__measure", "arguments": {"photo": uri}}, who)


@asynccontextmanager
async def gateway(folder: Path, *, files: bool = True) -> AsyncGenerator[Host]:
    (folder / "eyes.py").write_text(SERVER, "utf-8")
    settings = Settings(
        upstreams={"eyes": UpstreamSettings(command=sys.executable, args=(str(folder / "eyes.py"),))},
        http=HttpSettings(port=0),
        access=AccessSettings(tokens={name: TokenSettings(token=token) for name, token in TOKENS.items()}),
        content=ContentSettings(max_upload_bytes=100_000),
        experimental=ExperimentalSettings(files=files),
    )
    async with run_gateway(settings, over_http=True) as running:
        assert await running.router.upstreams["eyes"].ready(60)
        transfers = running.transfers
        app = http_app(
            running.router,
            settings.http,
            Identity("gateway", "1", methods=frozenset() if transfers is None else METHODS),
            access=Access(settings.http, settings.access),
            content=content_routes(running.store, running.links, settings.content),
            public=[] if transfers is None else file_routes(running.store, transfers),
        )
        async with anyio.create_task_group() as tasks, httpx2.AsyncClient(timeout=60) as http:
            bound = asyncio.Queue[int]()
            tasks.start_soon(partial(serve_http, app, settings.http, on_bound=bound.put_nowait))
            url = f"http://127.0.0.1:{await bound.get()}"
            running.links.serve_at(url, b"a key of at least 16 characters")
            yield Host(http, f"{url}/mcp")
            tasks.cancel_scope.cancel()


def picture(width: int = 31) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (width, 17), (1, 2, 3)).save(data, "PNG")
    return data.getvalue()


def digest(content: bytes) -> dict[str, str]:
    value = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return {"algorithm": "sha-256", "value": value}


async def test_a_file_is_sent_named_in_a_call_and_fetched_again(tmp_path: Path):
    content = picture()
    async with gateway(tmp_path) as host:
        announced = {"name": "a.png", "mimeType": "image/png", "size": len(content), "digest": digest(content)}
        place = await host.place(**announced)
        assert {key: place["file"][key] for key in announced} == announced
        assert place["upload"]["url"].startswith(host.url.removesuffix("/mcp"))
        assert place["upload"]["expiresAt"].endswith("Z")
        uri = place["file"]["uri"]
        early = await host.measured(uri)
        assert early["error"]["data"] == {"reason": "notUploaded"}
        assert (await host.send(place, content)).status_code == 201
        result = (await host.measured(uri))["result"]
        assert result["content"][0]["text"] == "31 by 17"

        fetched = (await host.ask("files/authorizeDownload", {"uri": uri}))["result"]
        assert fetched["file"]["digest"] == digest(content)
        got = await host.http.get(fetched["download"]["url"])
        assert got.content == content


async def test_a_file_is_its_owners_alone(tmp_path: Path):
    async with gateway(tmp_path) as host:
        place = await host.place(mimeType="image/png")
        assert (await host.send(place, picture())).status_code == 201
        uri = place["file"]["uri"]
        for told in (
            await host.measured(uri, "bob"),
            await host.ask("files/authorizeDownload", {"uri": uri}, "bob"),
        ):
            assert (told["error"]["code"], told["error"]["data"]) == (-32602, {"reason": "unknownFile"})


async def test_only_what_was_announced_is_taken_and_only_once(tmp_path: Path):
    content = picture()
    async with gateway(tmp_path) as host:
        place = await host.place(size=len(content), digest=digest(content))
        wrong = await host.send(place, content[:-1] + b"x")
        assert (wrong.status_code, wrong.json()["reason"]) == (422, "digestMismatch")
        short = await host.send(place, content[:-1])
        assert (short.status_code, short.json()["reason"]) == (422, "sizeMismatch")
        assert (await host.send(place, content + b"x")).status_code == 413
        assert (await host.send(place, content)).status_code == 201
        assert (await host.send(place, content)).status_code == 404
        place["upload"]["url"] += "x"
        assert (await host.send(place, content)).status_code == 404


@pytest.mark.parametrize(
    ("announced", "reason"),
    [
        ({"size": 100_001}, "maxSizeExceeded"),
        ({"size": -1}, "invalidSize"),
        ({"size": True}, "invalidSize"),
        ({"mimeType": "image"}, "invalidMimeType"),
        ({"mimeType": "image/png\r\nX: y"}, "invalidMimeType"),
        ({"digest": {"algorithm": "md5", "value": "AA"}}, "invalidDigest"),
        ({"digest": {"algorithm": "sha-256", "value": "AA"}}, "invalidDigest"),
        ({"digest": "x"}, "invalidDigest"),
    ],
)
async def test_what_cannot_be_taken_is_refused_before_it_is_sent(announced: dict[str, Any], reason: str):
    links = Links(60, "https://files.example.com")
    links.serve_at("http://127.0.0.1:1", b"a key of at least 16 characters")
    transfers = FileTransfers(MemoryStore(StoreSettings(), key=b"k" * 32), links, 100_000)
    with pytest.raises(FileRefused) as refused:
        await transfers.answer("files/authorizeUpload", announced, "ann")
    assert refused.value.data is not None
    assert refused.value.data["reason"] == reason


async def test_a_host_that_fetches_files_is_given_what_was_kept_and_told_where_files_go(tmp_path: Path):
    async with gateway(tmp_path) as host:
        call = {"name": "eyes__report", "arguments": {}}
        result = (await host.ask("tools/call", call))["result"]
        (block,) = [each for each in result["content"] if each["type"] == "file"]
        fetched = (await host.ask("files/authorizeDownload", {"uri": block["file"]["uri"]}))["result"]
        got = await host.http.get(fetched["download"]["url"])
        assert Image.open(io.BytesIO(got.content)).size == (4000, 3000)
        assert digest(got.content) == block["file"]["digest"]
        tools = {tool["name"]: tool for tool in (await host.ask("tools/list", {}))["result"]["tools"]}
        photo = tools["eyes__measure"]["inputSchema"]["properties"]["photo"]
        assert photo["x-mcp-file"] == {"transferModes": ["inline", "upload"], "accept": ["image/*"]}
        assert photo["format"] == "uri"

        # For others, everything is as it was.
        plain = (await host.ask("tools/call", call, files=False))["result"]
        assert "file" not in [each["type"] for each in plain["content"]]
        tools = {tool["name"]: tool for tool in (await host.ask("tools/list", {}, files=False))["result"]["tools"]}
        assert "x-mcp-file" not in tools["eyes__measure"]["inputSchema"]["properties"]["photo"]


async def test_without_the_setting_there_is_nothing_of_it(tmp_path: Path):
    async with gateway(tmp_path, files=False) as host:
        for method in sorted(METHODS):
            assert (await host.ask(method, {"uri": "mcp-file://gateway/x"}))["error"]["code"] == -32601
        result = (await host.ask("tools/call", {"name": "eyes__report", "arguments": {}}))["result"]
        assert "file" not in [each["type"] for each in result["content"]]
        assert (await host.http.post(host.url.replace("/mcp", "/files/x"))).status_code == 401


async def test_places_expire_and_are_bounded_and_only_safe_ways_are_named():
    now = [1_800_000_000.0]
    store = MemoryStore(StoreSettings(), key=b"k" * 32)
    links = Links(60, "https://files.example.com")
    transfers = FileTransfers(store, links, 1_000, clock=lambda: now[0])
    with pytest.raises(FileRefused, match="HTTPS"):
        await transfers.answer("files/authorizeUpload", {}, "ann")  # nothing is served yet
    links.serve_at("http://127.0.0.1:1", b"a key of at least 16 characters")
    place = await transfers.answer("files/authorizeUpload", {}, "ann")
    secret = place["upload"]["url"].rpartition("/")[2]
    assert transfers.announced(secret) is not None
    for _ in range(99):
        await transfers.answer("files/authorizeUpload", {}, "ann")
    with pytest.raises(FileRefused, match="too many"):
        await transfers.answer("files/authorizeUpload", {}, "ann")
    await transfers.answer("files/authorizeUpload", {}, "bob")
    now[0] += 901
    assert transfers.announced(secret) is None
    await transfers.answer("files/authorizeUpload", {}, "ann")

    slow = await transfers.answer("files/authorizeUpload", {}, "ann")
    file = transfers.announced(slow["upload"]["url"].rpartition("/")[2])
    assert file is not None
    file.is_sending = True  # it came in time, and takes longer than the place lasts
    now[0] += 901
    await transfers.answer("files/authorizeUpload", {}, "bob")
    file.is_sending, file.handle = False, "img_000000000000"
    assert transfers.with_handles(file.uri, "ann") == "img_000000000000"

    insecure = Links(60, "http://files.example.com")
    insecure.serve_at("http://127.0.0.1:1", b"a key of at least 16 characters")
    with pytest.raises(FileRefused, match="HTTPS"):
        await FileTransfers(store, insecure, 1_000).answer("files/authorizeUpload", {}, "ann")

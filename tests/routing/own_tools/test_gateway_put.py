"""`gateway_put`: content that a model brings itself."""

import base64
import os
from contextlib import asynccontextmanager

import jsonschema
import pytest

from gateway.content.fetch import Fetched
from gateway.content.store import fetch_bytes
from gateway.core.profiles.profile import Profile, ToolRules
from gateway.errors import FetchRefused
from gateway.routing.own_tools import OwnToolsServer
from gateway.routing.own_tools.gateway_put import PutTool

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\2\0\0\0\3\10\2\0\0\0" + b"\0" * 20
ALLOWED = "https://images.example.com/a.png"


class Links:
    is_served = True

    def link(self, stored, owner):
        return f"https://gateway.example.com/content/{stored.handle}?of={owner}"


class NoImages:
    async def run(self, effect):
        raise AssertionError("nothing is fitted here")


@asynccontextmanager
async def fetch(url):
    if url != ALLOWED:
        raise FetchRefused("this URL is not one that may be fetched")

    async def chunks():
        yield PNG[:10]
        yield PNG[10:]

    yield Fetched("image/png", "a.png", None, chunks())


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "allowed" / "below").mkdir(parents=True)
    (tmp_path / "allowed" / "below" / "chart.png").write_bytes(PNG)
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "allowed"


@pytest.fixture
def own_tools(store, folder) -> OwnToolsServer:
    return OwnToolsServer(store, NoImages(), PutTool(store, Links(), folders=(folder,), fetch=fetch))


async def put(own_tools, **arguments):
    params = {"name": "gateway_put", "arguments": arguments}
    profile = Profile(name="test", tools=ToolRules(helpers=True))
    return await own_tools.request("tools/call", params, owner="ann", profile=profile)


async def refused(own_tools, **arguments) -> str:
    result = await put(own_tools, **arguments)
    assert result["isError"] is True
    return result["content"][0]["text"]


async def test_base64_is_kept_and_named_by_its_handle(own_tools, store):
    result = await put(own_tools, data=base64.b64encode(PNG).decode(), name="../chart.png")
    told = result["structuredContent"]
    assert await fetch_bytes(store, told["handle"], owner="ann") == PNG
    assert (told["kind"], told["media_type"], told["name"], told["size"]) == (
        "image",
        "image/png",
        "chart.png",
        len(PNG),
    )
    assert told["url"] == f"https://gateway.example.com/content/{told['handle']}?of=ann"
    (block,) = result["content"]
    assert block["text"] == (
        f'[kept: image/png, {len(PNG)} bytes, chart.png; handle "{told["handle"]}": '
        "give it to tools that take content, or open it with gateway_view]"
    )
    assert (await put(own_tools, data="data:;base64," + base64.urlsafe_b64encode(PNG).decode()))["structuredContent"][
        "handle"
    ] == told["handle"]


@pytest.mark.parametrize(
    ("arguments", "content", "media_type"),
    [
        ({"data": "data:text/csv;charset=utf-8,a%2Cb%0A"}, b"a,b\n", "text/csv"),
        ({"data": "data:text/csv;base64,YSxi"}, b"a,b", "text/csv"),
        ({"data": "YSxi", "media_type": "text/csv"}, b"a,b", "text/csv"),
        ({"data": "YSxi"}, b"a,b", "application/octet-stream"),
        ({"data": "data:,plain"}, b"plain", "application/octet-stream"),
    ],
)
async def test_a_data_uri_says_what_it_is(own_tools, store, arguments, content, media_type):
    told = (await put(own_tools, **arguments))["structuredContent"]
    assert await fetch_bytes(store, told["handle"], owner="ann") == content
    assert told["media_type"] == media_type


async def test_an_allowed_url_is_fetched(own_tools, store):
    told = (await put(own_tools, url=ALLOWED))["structuredContent"]
    assert await fetch_bytes(store, told["handle"], owner="ann") == PNG
    assert (told["name"], told["media_type"]) == ("a.png", "image/png")
    assert "not one that may be fetched" in await refused(own_tools, url="http://127.0.0.1/")


async def test_a_file_in_an_allowed_folder_is_taken(own_tools, store, folder):
    path = folder / "below" / "chart.png"
    for given in (str(path), path.as_uri(), str(folder / "x" / ".." / "below" / "chart.png")):
        told = (await put(own_tools, path=given))["structuredContent"]
        assert await fetch_bytes(store, told["handle"], owner="ann") == PNG
        assert told["name"] == "chart.png"


@pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")
async def test_what_is_outside_of_the_folders_is_refused_whether_it_is_there_or_not(own_tools, store, folder):
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "up").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")
    (folder.parent / "allowed-too").mkdir()
    (folder.parent / "allowed-too" / "x").write_text("x")
    words = set()
    for path in (
        folder.parent / "secret.txt",
        folder / ".." / "secret.txt",
        folder / "link.txt",
        folder / "up" / "secret.txt",
        folder.parent / "allowed-too" / "x",
        folder / "pipe",
        folder,
        folder / "nothing",
        "/etc/passwd",
        "below/chart.png",
        "file://below/chart.png",
        "\0",
        "x" * 100_000,
    ):
        said = await refused(own_tools, path=str(path))
        words.add(said.partition("is not a file")[2])
    assert len(words) == 1
    assert store.usage == (0, 0)


async def test_a_link_within_the_folders_is_followed(own_tools, folder):
    if os.name == "posix":
        (folder / "inner.png").symlink_to(folder / "below" / "chart.png")
        assert (await put(own_tools, path=str(folder / "inner.png")))["structuredContent"]["name"] == "chart.png"


@pytest.mark.parametrize(
    "arguments",
    [{}, {"data": ""}, {"data": "YQ==", "path": "/x"}, {"data": "not base64!"}, {"data": 5}, {"data": "data:x;base64"}],
)
async def test_arguments_that_cannot_be_meant_are_refused_in_words(own_tools, store, arguments):
    assert (await refused(own_tools, **arguments)).startswith("[")
    assert store.usage == (0, 0)


async def test_what_the_store_has_no_room_for_is_refused(own_tools):
    assert "store" in await refused(own_tools, data=base64.b64encode(b"x" * 10_000_001).decode())


async def test_the_tool_offers_only_what_the_configuration_allows(own_tools, store):
    bare = OwnToolsServer(store, NoImages(), PutTool(store, Links()))
    declared = {tool["name"]: tool for one in (own_tools, bare) for tool in one.tools() if one is own_tools}
    narrow = {tool["name"]: tool for tool in bare.tools()}["gateway_put"]
    wide = declared["gateway_put"]
    assert set(wide["inputSchema"]["properties"]) == {"data", "url", "path", "name", "media_type"}
    assert set(narrow["inputSchema"]["properties"]) == {"data", "name", "media_type"}
    for tool in (wide, narrow):
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["annotations"]["readOnlyHint"] is False
        assert tool["annotations"]["destructiveHint"] is False
    assert (wide["annotations"]["openWorldHint"], narrow["annotations"]["openWorldHint"]) == (True, False)
    assert "does not fetch URLs" in await refused(bare, url=ALLOWED)
    assert "None is allowed" in await refused(bare, path="/etc/passwd")

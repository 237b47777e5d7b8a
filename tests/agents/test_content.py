"""Content that a program puts in, and that tools take by handle: in process, over HTTP, and for tools of its own."""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import gateway
from gateway.errors import ArgumentError, ConfigError, ContentError

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAEElEQVR42mNQSDgARww4OQAdNg8BewpllwAAAABJRU5ErkJggg=="
)
CONTENT_SERVER = Path(__file__).parents[1] / "servers" / "scripted_stdio.py"


@pytest.fixture
def script(tmp_path: Path) -> dict[str, Any]:
    """An upstream with a tool that takes an image, and one that gives one."""
    image = {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
    tools = [
        {"name": "echo", "inputSchema": gateway.image_input("photo", "a photo")},
        {"name": "draw", "inputSchema": {"type": "object"}},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"tools": tools, "results": {"draw": {"content": [image]}}}), "utf-8")
    return {"command": sys.executable, "args": [str(CONTENT_SERVER), str(path)]}


async def test_what_a_program_puts_in_reaches_a_tool_as_bytes(opened, chat, script) -> None:
    async with opened(upstreams={"one": script}) as gw:
        stored = await gw.put(PNG, name="field.png")
        assert (stored.media_type, stored.kind, stored.size, stored.name) == (
            "image/png",
            "image",
            len(PNG),
            "field.png",
        )
        assert stored.handle in gateway.directory_note([stored])
        tools = gw.toolset(api="openai_chat")
        responded = await tools.respond(chat(("one__echo", {"photo": stored.handle})))
    photo = json.loads(responded.results[0].envelope.blocks[0].text)["photo"]
    assert base64.b64decode(photo["source"]["data"]) == PNG
    assert photo["display_name"] == "field.png"


async def test_a_model_is_told_the_handle_of_a_picture_that_a_tool_could_take(opened, chat, script) -> None:
    async with opened(upstreams={"one": script}) as gw:
        tools = gw.toolset(api="openai_chat")
        offered = {schema["function"]["name"]: schema["function"] for schema in await tools.schemas()}
        assert set(offered) == {"one__echo", "one__draw"}, "the gateway's own tools are for hosts"
        assert "its handle" in json.dumps(offered["one__echo"])
        responded = await tools.respond(chat(("one__draw", {})))
        named = json.dumps(list(responded)).split("its handle for tools is ", 1)[1][:16]
        again = await tools.respond(chat(("one__echo", {"photo": named})))
    assert base64.b64encode(PNG).decode() in again.results[0].envelope.blocks[0].text


async def test_the_store_is_at_hand_in_process_and_only_there(in_process, serve, script) -> None:
    async with in_process(upstreams={"one": script}) as gw:
        stored = await gw.put(b"a,b\n1,2\n", media_type="text/csv")
        assert stored.media_type == "text/csv"
        assert [one.handle for one in await gw.store.list(owner="local")] == [stored.handle]
    async with serve(upstreams={"one": script}) as url, gateway.connect(url, token="a token that nobody guesses") as gw:
        with pytest.raises(ConfigError, match=r"in another process .*open_store"):
            gw.store  # noqa: B018


async def test_content_that_cannot_be_kept_is_an_error_that_says_why(opened, script) -> None:
    async with opened(upstreams={"one": script}, store={"max_bytes": 10}) as gw:
        with pytest.raises(ContentError, match="10"):
            await gw.put(PNG)


async def test_a_program_s_own_tool_gets_bytes_for_handles_in_every_form() -> None:
    async with gateway.open_store() as store:
        stored = await store.put(PNG, owner="local", media_type="image/png", name="field.png")
        plain = {"type": "object", "properties": {"data": {"type": "string", "contentEncoding": "base64"}}}
        resolved = await gateway.resolve_arguments(plain, {"data": stored.handle, "other": 1}, store)
        assert resolved == {"data": base64.b64encode(PNG).decode(), "other": 1}
        nested = {"type": "object", "properties": {"photos": {"type": "array", "items": gateway.image_input("p")}}}
        given = {"photos": [{"p": stored.uri}, {"p": stored.handle}]}
        resolved = await gateway.resolve_arguments(nested, given, store)
        assert [photo["p"]["handle_id"] for photo in resolved["photos"]] == [stored.handle] * 2
        assert given == {"photos": [{"p": stored.uri}, {"p": stored.handle}]}


async def test_what_a_handle_cannot_stand_for_is_told_by_the_argument() -> None:
    store = gateway.MemoryStore()
    pdf = await store.put(b"%PDF-1.4", owner="local", media_type="application/pdf")
    schema = gateway.image_input("photo")
    with pytest.raises(ArgumentError, match=r"^photo: .*an image"):
        await gateway.resolve_arguments(schema, {"photo": pdf.handle}, store)
    with pytest.raises(ArgumentError, match=r"^photo: there is no content"):
        await gateway.resolve_arguments(schema, {"photo": "img_7h3k2m9q4w8x"}, store)
    with pytest.raises(ArgumentError, match=r"^photo: there is no content"):
        await gateway.resolve_arguments(schema, {"photo": pdf.handle}, store, owner="ann")


async def test_a_store_is_opened_by_its_url(tmp_path: Path) -> None:
    url = (tmp_path / "kept").as_uri()
    async with gateway.open_store(url) as store:
        stored = await store.put(PNG, owner="local", media_type="image/png")
    async with gateway.open_store(url) as store:
        assert (await store.metadata(stored.handle, owner="local")).size == len(PNG)
    with pytest.raises(ConfigError, match=r"the store's url: .*stores\.md"):
        async with gateway.open_store("ftp://example.com/x"):
            pass


@pytest.mark.parametrize(
    ("name", "declared", "found"),
    [
        ("table.csv", None, "text/csv"),
        ("table.csv", "application/octet-stream", "text/csv"),
        ("table.csv", "text/plain", "text/plain"),
        ("table.csv.gz", None, "application/octet-stream"),
        (None, None, "application/octet-stream"),
    ],
)
async def test_a_type_is_found_by_the_name_where_nothing_else_says_it(opened, name, declared, found) -> None:
    async with opened() as gw:
        stored = await gw.put(b"a,b\n1,2\n", media_type=declared, name=name)
        assert stored.media_type == found
        again = await gw.put(b"a,b\n1,2\n", media_type="text/markdown", name="other.md")
        assert (again.handle, again.media_type) == (stored.handle, found)

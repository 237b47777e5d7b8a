import base64
import json
from typing import Any

import jsonschema
import pytest

from gateway.content.store import MemoryStore
from gateway.errors import InvalidRequest, UnknownMethod, UnknownResource, UnknownTool
from gateway.routing.own_tools import OwnToolsServer

pytestmark = pytest.mark.anyio


class NoImages:
    """Media workers for requests that must not need any."""

    async def run(self, effect: Any) -> Any:
        raise AssertionError("nothing is fitted here")


@pytest.fixture
def own_tools(store: MemoryStore) -> OwnToolsServer:
    return OwnToolsServer(store, NoImages())


def test_the_tools_are_declared_for_models_with_schemas_that_hold(own_tools: OwnToolsServer):
    view, read = own_tools.tools()
    assert (view["name"], read["name"]) == ("gateway_view", "gateway_read")
    for tool in (view, read):
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        assert tool["annotations"]["readOnlyHint"] is True
        assert len(tool["description"]) < 1_000
        json.dumps(tool)
    valid = jsonschema.Draft202012Validator(view["inputSchema"]).is_valid
    assert valid({"handle": "h", "size": 5, "crop": {"left": 0, "top": 0, "width": 1, "height": 1}})
    assert not valid({"size": 5})


async def test_stored_content_is_listed_for_its_owner_with_name_type_and_size(
    own_tools: OwnToolsServer, store: MemoryStore
):
    named = await store.put(b"abc", owner="ann", media_type="text/plain", name="notes.txt")
    bare = await store.put(b"%PDF-", owner="ann", media_type="application/pdf")
    directory, *listed = await own_tools.resources(owner="ann")
    assert (directory["uri"], directory["mimeType"]) == ("content://directory", "text/plain")
    assert listed == [
        {"uri": f"content://{named.handle}", "name": "notes.txt", "mimeType": "text/plain", "size": 3},
        {"uri": f"content://{bare.handle}", "name": f"{bare.handle}.pdf", "mimeType": "application/pdf", "size": 5},
    ]
    assert await own_tools.resources(owner="bob") == ()


async def test_the_directory_names_what_a_model_can_pass_to_tools_of_its_owner_only(
    own_tools: OwnToolsServer, store: MemoryStore
):
    older = await store.put(b"abc", owner="ann", media_type="text/plain", name="notes\x1b.txt")
    newer = await store.put(b"%PDF-", owner="ann", media_type="application/pdf")
    read = await own_tools.request("resources/read", {"uri": "content://directory"}, owner="ann")
    (contents,) = read["contents"]
    lines = contents["text"].splitlines()
    assert lines[1:] == [
        f"- {newer.handle}: application/pdf, 5 bytes",
        f"- {older.handle}: text/plain, 3 bytes, notes .txt",
    ]
    asked = await own_tools.request("prompts/get", {"name": "gateway_content"}, owner="ann")
    assert asked["messages"] == [{"role": "user", "content": {"type": "text", "text": contents["text"]}}]
    nothing = await own_tools.request("prompts/get", {"name": "gateway_content"}, owner="bob")
    assert "no content yet" in nothing["messages"][0]["content"]["text"]
    with pytest.raises(InvalidRequest):
        await own_tools.request("prompts/get", {"name": "other"}, owner="ann")


async def test_stored_content_is_read_whole_as_text_or_as_bytes(own_tools: OwnToolsServer, store: MemoryStore):
    note = await store.put("é".encode(), owner="ann", media_type="text/plain")
    odd = await store.put(b"\xff\xfe", owner="ann", media_type="text/plain")
    data = await store.put(b"\x00\x01", owner="ann", media_type="application/octet-stream")

    async def contents(uri: str) -> Any:
        return (await own_tools.request("resources/read", {"uri": uri}, owner="ann"))["contents"]

    assert await contents(note.uri) == [{"uri": note.uri, "mimeType": "text/plain", "text": "é"}]
    assert await contents(odd.uri) == [
        {"uri": odd.uri, "mimeType": "text/plain", "blob": base64.b64encode(b"\xff\xfe").decode()}
    ]
    assert (await contents(data.uri))[0]["blob"] == "AAE="


async def test_what_is_not_the_owners_is_unknown(own_tools: OwnToolsServer, store: MemoryStore):
    stored = await store.put(b"abc", owner="ann", media_type="text/plain")
    for uri in (stored.uri, "content://txt_000000000000", "content://"):
        with pytest.raises(UnknownResource):
            await own_tools.request("resources/read", {"uri": uri}, owner="bob")


async def test_other_tools_and_methods_are_unknown(own_tools: OwnToolsServer):
    with pytest.raises(UnknownTool):
        await own_tools.request("tools/call", {"name": "gateway_paint"}, owner="ann")
    with pytest.raises(UnknownMethod):
        await own_tools.request("tools/list", {}, owner="ann")


async def test_arguments_that_are_no_object_are_an_error_in_words(own_tools: OwnToolsServer):
    result = await own_tools.request("tools/call", {"name": "gateway_read", "arguments": [1]}, owner="ann")
    assert result == {"content": [{"type": "text", "text": "[arguments must be an object]"}], "isError": True}


@pytest.mark.parametrize(("tool", "takes"), [("gateway_view", "handle"), ("gateway_read", "uri")])
async def test_an_argument_that_a_tool_does_not_have_is_refused_and_named(
    own_tools: OwnToolsServer, store: MemoryStore, tool: str, takes: str
):
    """Passed over, it would cost the whole picture once more: `region` is meant to be `crop`."""
    stored = await store.put(b"abc", owner="ann", media_type="text/plain")
    given = {"handle": stored.handle, "region\x1b": [0, 0, 5, 5]}
    refused = await own_tools.request("tools/call", {"name": tool, "arguments": given}, owner="ann")
    assert refused["isError"]
    said = refused["content"][0]["text"]
    assert f"{tool} has no argument " in said
    assert "region" in said
    assert "\x1b" not in said
    assert takes in said
    absent = {"handle": stored.handle, "region": None}
    taken = await own_tools.request("tools/call", {"name": "gateway_read", "arguments": absent}, owner="ann")
    assert not taken.get("isError")

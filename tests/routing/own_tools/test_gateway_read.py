import base64
import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.config.content_settings import LimitSettings, MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.store import MemoryStore
from gateway.core.model.effects import DocumentRead, ReadDocument
from gateway.core.profiles.profile import ImageRules, LimitRules, Profile, TextRules, TokenRules
from gateway.core.tokens import text_tokens
from gateway.errors import MediaError, UnknownResource, UpstreamRefused
from gateway.routing.own_tools import OwnToolsServer

pytestmark = pytest.mark.anyio

SHOWS_ALL = Profile(name="passthrough")
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class NoImages:
    """Media workers for tools that must not need any."""

    async def run(self, effect: Any) -> Any:
        assert isinstance(effect, ReadDocument), "reading fits no images"
        assert isinstance(effect.data, bytes)
        if b"broken" in effect.data:
            raise MediaError("it is broken")
        return DocumentRead(3, ("one", "", "three words\nhere")) if b"words" in effect.data else DocumentRead(1, ("",))


Read = Callable[..., Any]


@pytest.fixture
def resources() -> dict[str, Any]:
    """What upstreams have: a raw result of resources/read, or an error, by uri."""
    return {}


@pytest.fixture
def read(store: MemoryStore, resources: dict[str, Any]) -> Read:
    return reader(store, resources)


def reader(store: MemoryStore, resources: dict[str, Any]) -> Read:
    async def read_resource(uri: str) -> dict[str, Any]:
        found = resources.get(uri, UnknownResource(f"no upstream has the resource {uri}"))
        if isinstance(found, Exception):
            raise found
        return found

    own_tools = OwnToolsServer(store, NoImages())

    async def call(profile: Profile = SHOWS_ALL, owner: str = "ann", **arguments: Any) -> dict[str, Any]:
        params = {"name": "gateway_read", "arguments": arguments}
        return await own_tools.request("tools/call", params, owner=owner, profile=profile, read=read_resource)

    return call


def text(result: dict[str, Any]) -> str:
    assert [block["type"] for block in result["content"]] == ["text"]
    return result["content"][0]["text"]


async def test_a_text_is_read_in_pieces_that_say_where_to_read_on(read: Read, store: MemoryStore):
    stored = await store.put(("é" * 5 + "x" * 25_000).encode(), owner="ann", media_type="text/plain")
    first, rest = text(await read(handle=stored.handle)), text(await read(handle=stored.handle, offset=20_000))
    assert first == "é" * 5 + "x" * 19_995 + "\n[characters 0 to 20,000 of 25,005; read on with offset 20000]"
    assert rest == "x" * 5_005 + "\n[characters 20,000 to 25,005 of 25,005; this is the end]"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=200), st.integers(1, 60))
def test_pieces_put_together_are_the_text(anyio_backend: str, whole: str, limit: int):
    async def read_all() -> str:
        store = MemoryStore(StoreSettings())
        read, pieces, offset = reader(store, {}), "", 0
        stored = await store.put(whole.encode(), owner="ann", media_type="text/plain")
        while offset < len(whole):
            piece = text(await read(handle=stored.handle, offset=offset, limit=limit)).rpartition("\n[characters ")[0]
            pieces, offset = pieces + piece, offset + len(piece)
        return pieces

    assert anyio.run(read_all, backend=anyio_backend) == whole


@pytest.mark.parametrize("offset", [3, 4, 1_000])
async def test_an_offset_at_the_end_is_an_error_that_names_the_length(read: Read, store: MemoryStore, offset: int):
    stored = await store.put(b"abc", owner="ann", media_type="text/plain")
    result = await read(handle=stored.handle, offset=offset)
    assert result["isError"] is True
    assert "the text has 3 characters" in text(result).lower()


async def test_an_empty_text_says_so(read: Read, store: MemoryStore):
    stored = await store.put(b"", owner="ann", media_type="text/plain")
    assert text(await read(handle=stored.handle)) == "[characters 0 to 0 of 0; this is the end]"


async def test_no_more_is_shown_than_the_host_would_leave_uncut(read: Read, store: MemoryStore):
    stored = await store.put(b"\x01" * 50_000, owner="ann", media_type="text/plain")
    short = Profile(name="short", text=TextRules(max_chars=10_000))
    narrow = Profile(name="narrow", limits=LimitRules(result_chars=20_000))
    assert "[characters 0 to 9,600 of 50,000; read on with offset 9600]" in text(
        await read(short, handle=stored.handle)
    )
    piece = text(await read(narrow, handle=stored.handle, limit=50_000)).count("\x01")
    assert 1_000 < piece < 20_000 // 6


@pytest.mark.parametrize("most", [300, 2_000])
async def test_a_piece_is_within_the_tokens_of_a_result(read: Read, store: MemoryStore, most: int):
    whole = " ".join(f"w{number}" for number in range(20_000))
    stored = await store.put(whole.encode(), owner="ann", media_type="text/plain")
    budgeted = Profile(name="budgeted", tokens=TokenRules(max_result=most))
    piece = text(await read(budgeted, handle=stored.handle))
    assert most // 4 < text_tokens(piece) <= most
    shown = piece.rpartition("\n")[0]
    assert whole.startswith(shown)
    assert piece.endswith(f"read on with offset {len(shown)}]")
    found = text(await read(budgeted, handle=stored.handle, search="w1"))
    assert most // 4 < text_tokens(found) <= most
    assert "; continue with offset " in found


async def test_a_search_gets_on_however_small_the_budget_is(read: Read, store: MemoryStore):
    stored = await store.put(b"word " * 100, owner="ann", media_type="text/plain")
    found = text(await read(Profile(name="tiny", tokens=TokenRules(max_result=1)), handle=stored.handle, search="word"))
    assert found.startswith("['word' is found 100 times, the first 1 are shown; continue with offset 5]")


@pytest.mark.parametrize(
    "media_type", ["application/json", "image/svg+xml", "application/ld+json", "text/x-unheard-of"]
)
async def test_text_is_what_has_a_type_of_text(read: Read, store: MemoryStore, media_type: str):
    stored = await store.put(b"<\xff>", owner="ann", media_type=media_type)
    assert text(await read(handle=stored.handle)).startswith("<\ufffd>\n")


async def test_an_image_is_named_with_the_tool_that_shows_it(read: Read, store: MemoryStore):
    stored = await store.put(PNG, owner="ann", media_type="image/png")
    line = text(await read(handle=stored.handle))
    assert line == (
        f"[{stored.handle} is not text but an image: image/png, 1x1, {len(PNG)} bytes; "
        f'see it with gateway_view, handle "{stored.handle}"]'
    )
    blind = Profile(name="blind", image=ImageRules(show="line"))
    assert "gateway_view" not in text(await read(blind, handle=stored.handle))


async def test_other_bytes_are_named_by_kind_type_and_size(read: Read, store: MemoryStore):
    stored = await store.put(b"\x00" * 1_500, owner="ann", media_type="application/octet-stream")
    line = text(await read(handle=stored.handle))
    assert line == (
        f"[{stored.handle} is not text but binary content: application/octet-stream, 1.5 KB; "
        f'pass the handle "{stored.handle}" to a tool that takes content; '
        f"the user can save it with `mcp-gateway content get {stored.handle}`]"
    )


async def test_a_resource_is_read_by_uri_like_a_kept_text(read: Read, resources: dict[str, Any]):
    resources["file:///a"] = {"contents": [{"uri": "file:///a", "mimeType": "text/plain", "text": "0123456789"}]}
    result = text(await read(uri="file:///a", offset=2, limit=3))
    assert result == "234\n[characters 2 to 5 of 10; read on with offset 5]"


async def test_a_resource_of_several_parts_is_one_text_with_their_uris(
    read: Read, resources: dict[str, Any], store: MemoryStore
):
    resources["dir:///"] = {
        "contents": [
            {"uri": "dir:///a", "mimeType": "text/plain", "text": "A"},
            {"uri": "dir:///b", "blob": base64.b64encode(PNG).decode().rstrip("=")},
            {"uri": "dir:///c", "mimeType": "text/csv", "blob": base64.b64encode(b"x,y").decode()},
            {"uri": "dir:///d\x1b", "blob": "no base64!"},
            "no object",
        ]
    }
    result = text(await read(uri="dir:///"))
    [kept] = await store.list(owner="ann")
    length = len(result.rpartition("\n")[0])
    assert result.splitlines() == [
        "[resource <dir:///a> (text/plain)]",
        "A",
        f"[dir:///b is not text but an image: image/png, 1x1, {len(PNG)} bytes; "
        f'see it with gateway_view, handle "{kept.handle}"]',
        "[resource <dir:///c> (text/csv)]",
        "x,y",
        "[dir:///d: unreadable, its data is not base64]",
        f"[characters 0 to {length} of {length}; this is the end]",
    ]


async def test_bytes_of_a_resource_that_cannot_be_kept_are_named_all_the_same(resources: dict[str, Any]):
    resources["x:///"] = {"contents": [{"uri": "x:///", "blob": base64.b64encode(PNG).decode()}]}
    line = text(await reader(MemoryStore(StoreSettings(max_bytes=10)), resources)(uri="x:///"))
    assert line == f"[x:/// is not text but an image: image/png, 1x1, {len(PNG)} bytes]"


async def test_stored_content_is_read_by_its_uri_too(read: Read, store: MemoryStore):
    stored = await store.put(b"abc", owner="ann", media_type="text/plain")
    assert text(await read(uri=stored.uri)).startswith("abc\n")
    assert (await read(uri=stored.uri, owner="bob"))["isError"] is True


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"handle": "  "},
        {"handle": 5},
        {"handle": "txt_000000000000", "uri": "file:///a"},
        {"uri": "file:///a", "offset": -1},
        {"uri": "file:///a", "limit": 0},
        {"uri": "file:///a", "limit": "many"},
    ],
)
async def test_arguments_that_cannot_be_meant_are_errors(
    read: Read, resources: dict[str, Any], arguments: dict[str, Any]
):
    resources["file:///a"] = {"contents": [{"uri": "file:///a", "text": "x"}]}
    assert (await read(**arguments))["isError"] is True


@pytest.mark.parametrize("result", [{}, {"contents": None}, {"contents": []}, {"contents": ["x"]}])
async def test_a_resource_without_content_is_an_error_in_words(read: Read, resources: dict[str, Any], result: Any):
    resources["x://"] = result
    answer = await read(uri="x://")
    assert answer["isError"] is True
    assert text(answer) == "[x:// has no content]"


async def test_what_the_upstream_refuses_is_told_without_its_control_characters(read: Read, resources: dict[str, Any]):
    resources["x://"] = UpstreamRefused("files", -32002, "not\x1b[2J there\n" + "y" * 100_000)
    answer = await read(uri="x://")
    assert answer["isError"] is True
    assert "upstream 'files': not [2J there" in text(answer)
    assert len(text(answer)) < 2_000
    assert "no upstream has the resource y://" in text(await read(uri="y://"))


# -- documents, and searching ----------------------------------------------------------------------

DOCUMENT = b"%PDF-1.7 with words"


async def test_a_document_is_read_as_its_text(read: Read, store: MemoryStore, resources: dict[str, Any]):
    stored = await store.put(DOCUMENT, owner="ann", media_type="application/pdf")
    words = "[page 1 of 3]\none\n\n[page 2 of 3: no text]\n\n\n[page 3 of 3]\nthree words\nhere"
    assert text(await read(handle=stored.handle)).startswith(words)
    blob = base64.b64encode(DOCUMENT).decode()
    resources["doc://a"] = {"contents": [{"uri": "doc://a", "mimeType": "application/pdf", "blob": blob}]}
    assert text(await read(uri="doc://a")).startswith(words)


@pytest.mark.parametrize("content", [b"%PDF-1.7 scanned", b"%PDF-1.7 broken"])
async def test_a_document_without_text_is_named_with_what_shows_it(read: Read, store: MemoryStore, content: bytes):
    stored = await store.put(content, owner="ann", media_type="application/pdf")
    line = text(await read(handle=stored.handle))
    assert "is not text but a document: application/pdf" in line
    assert f'see it with gateway_view, handle "{stored.handle}"' in line


async def test_words_are_found_with_their_offsets(read: Read, store: MemoryStore):
    whole = "x" * 500 + "The Needle\n" + "y" * 500 + " the  needle, again"
    stored = await store.put(whole.encode(), owner="ann", media_type="text/plain")
    said = text(await read(handle=stored.handle, search="the needle"))
    head, first, second = said.splitlines()
    assert head == "['the needle' is found 2 times]"
    assert first.startswith("[offset 500] … xxx")
    assert "The Needle yyy" in first
    assert second == f"[offset {whole.index(' the  needle') + 1}] … {'y' * 119} the needle, again …"
    assert text(await read(handle=stored.handle, search="the needle", offset=501)).count("[offset") == 1
    assert text(await read(handle=stored.handle, search="(needle")) == "['(needle' not found]"


async def test_a_search_shows_no_more_than_the_host_does(read: Read, store: MemoryStore):
    stored = await store.put(b"word " * 10_000, owner="ann", media_type="text/plain")
    said = text(await read(handle=stored.handle, search="word"))
    assert said.startswith("['word' is found 10,000 times, the first 50 are shown; continue with offset 250]")
    narrow = Profile(name="narrow", text=TextRules(max_chars=2_000))
    assert len(text(await read(narrow, handle=stored.handle, search="word"))) <= 2_000


async def test_a_search_for_a_page_of_text_is_refused(read: Read, store: MemoryStore):
    stored = await store.put(b"a" * 10_000, owner="ann", media_type="text/plain")
    refused = await read(handle=stored.handle, search="a" * 301)
    assert refused["isError"] is True
    assert "at most 300 characters" in text(refused)


# -- queries -----------------------------------------------------------------------------------------------------------


async def queried(store: MemoryStore, **arguments: Any) -> dict[str, Any]:
    async with MediaWorkers(MediaSettings(workers=1)) as workers:
        params = {"name": "gateway_read", "arguments": arguments}
        return await OwnToolsServer(store, workers).request("tools/call", params, owner="ann")


async def test_a_query_of_kept_json_is_read_piece_by_piece(store):
    rows = [{"id": number, "name": f"row {number}"} for number in range(1_000)]
    kept = await store.put(json.dumps({"rows": rows}).encode(), owner="ann", media_type="text/plain")
    first = await queried(store, handle=kept.handle, query="rows[?id > `900`]", limit=40)
    text, line = first["content"][0]["text"].rsplit("\n", 1)
    assert text.startswith("id\tname\n901\trow 901\n")
    assert "read on with offset 40" in line
    rest = await queried(store, handle=kept.handle, query="rows[?id > `900`]", offset=40)
    assert rest["content"][0]["text"].splitlines()[-2] == "999\trow 999"


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (
            {
                "query": "rows[",
            },
            "the query is not valid",
        ),
        ({"query": "x" * 2_001}, "query takes at most 2,000 characters"),
        ({"query": "a", "search": "b"}, "either search or query"),
        ({"query": 7}, "query must be a text"),
    ],
)
async def test_a_query_that_is_wrong_says_what_to_do(store, arguments, cause):
    kept = await store.put(b'{"rows": []}', owner="ann", media_type="application/json")
    refused = await queried(store, handle=kept.handle, **arguments)
    assert refused["isError"]
    assert cause in refused["content"][0]["text"]


async def test_as_much_text_as_a_result_may_have_is_read_and_asked():
    store, most = MemoryStore(StoreSettings()), LimitSettings().result_bytes
    for size, is_read in ((most, True), (most + 1, False)):
        kept = await store.put(b'["' + b"a" * (size - 4) + b'"]', owner="ann", media_type="application/json")
        for arguments in ({"offset": size - 10}, {"query": "length(@)"}):
            result = await queried(store, handle=kept.handle, **arguments)
            assert bool(result.get("isError")) is not is_read, result
        assert is_read or "Ask the tool that returned it for less" in result["content"][0]["text"]


async def test_a_query_of_what_is_not_json_says_so(store):
    kept = await store.put(b"plain words", owner="ann", media_type="text/plain")
    refused = await queried(store, handle=kept.handle, query="a")
    assert refused["isError"]
    assert "it is not JSON" in refused["content"][0]["text"]

"""The result of a tool with a page: the page's data is the upstream's to the byte, what the model reads is shaped."""

import base64
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from PIL import Image

from gateway.config.builtin_profiles import load_builtin
from gateway.config.content_settings import MediaSettings
from gateway.config.store_settings import StoreSettings
from gateway.content.media import MediaWorkers
from gateway.content.shaping import Shaper
from gateway.content.store import MemoryStore
from gateway.core.apps import for_host
from gateway.core.apps.results import TAKEN_BY_THE_MODEL
from gateway.core.model.revisions import REVISIONS
from gateway.core.profiles.host_profiles import narrow, resolve_profiles

pytestmark = pytest.mark.anyio
PROFILES = resolve_profiles(load_builtin())


def png() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 30, 30)).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


PICTURE = png()
DATA = {
    "title": "Längen ☃",
    "picture": {"data": PICTURE, "mimeType": "image/png"},
    "uri": f"data:image/png;base64,{PICTURE}",
    "rows": [{"n": 12345678901234567890, "x": 1.5, "none": None, "yes": True}] * 3,
}
META = {"example.org/page": {"picture": PICTURE, "deep": [[None]]}, "ui": {"csp": {"connectDomains": []}}}
RESULT = {
    "content": [{"type": "text", "text": "Three rows."}, {"type": "image", "data": PICTURE, "mimeType": "image/png"}],
    "structuredContent": DATA,
    "_meta": META,
}


@pytest.fixture(scope="module")
async def shaper() -> AsyncIterator[Shaper]:
    async with MediaWorkers(MediaSettings()) as media:
        yield Shaper(MemoryStore(StoreSettings()), media)


def texts(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def is_the_data(text: str) -> bool:
    try:
        return bool(json.loads(text)["title"] == DATA["title"])
    except (ValueError, TypeError):
        return False


def without_the_twin(result: dict[str, Any]) -> list[Any]:
    """The content without the structured content as text, which may be the end of a text that was put together."""
    content: list[Any] = []
    for block in result["content"]:
        text = block.get("text", "")
        start = text.find('{"title":') if '{"title":' in text else text.find('{\n  "title":')
        kept = text if start < 0 or not is_the_data(text[start:]) else text[:start].rstrip("\n")
        if block["type"] != "text" or kept:
            content.append({**block, "text": kept} if block["type"] == "text" else block)
    return content


@pytest.mark.parametrize("revision", REVISIONS[1:])
@pytest.mark.parametrize("name", PROFILES)
async def test_structured_content_and_meta_are_the_upstreams_for_every_profile(
    shaper: Shaper, name: str, revision: str
) -> None:
    """And the content is what a model gets of a tool without a page: with media shown, and no base64 in a text."""
    profile = narrow(PROFILES[name], revision)
    before = json.dumps(RESULT)
    shaped = await shaper.shape(RESULT, profile, owner="me", app=True)
    assert json.dumps(shaped.result["structuredContent"]) == json.dumps(DATA)
    assert {key: shaped.result["_meta"][key] for key in META} == META
    assert json.dumps(RESULT) == before
    plain = await shaper.shape(RESULT, profile, owner="me")
    if profile.apps.data == "structured":
        assert without_the_twin(shaped.result) == without_the_twin(plain.result)
    assert PICTURE not in texts(shaped.result) or PICTURE in texts(plain.result)
    assert any(note.kind == "app" for note in shaped.notes)


async def test_a_host_that_loses_structured_content_gets_it_as_the_first_text_alone(shaper: Shaper) -> None:
    profile = PROFILES["claude-desktop"]
    assert profile.apps.data == "text"
    result = {"content": [{"type": "text", "text": "Two."}], "structuredContent": {"n": 2, "name": "☃"}}
    shaped = await shaper.shape(result, profile, owner="me", app=True)
    first, *rest = shaped.result["content"]
    assert json.loads(first["text"]) == {"n": 2, "name": "☃"}
    assert [block["text"] for block in rest] == ["Two."]  # and not once more
    twin = {"content": [{"type": "text", "text": '{"n": 2, "name": "☃"}'}], "structuredContent": {"n": 2, "name": "☃"}}
    shaped = await shaper.shape(twin, profile, owner="me", app=True)
    assert [json.loads(block["text"]) for block in shaped.result["content"]] == [{"n": 2, "name": "☃"}]


async def test_the_first_text_has_no_media_in_it_since_the_model_reads_it_too(shaper: Shaper) -> None:
    shaped = await shaper.shape(RESULT, PROFILES["claude-desktop"], owner="me", app=True)
    data = json.loads(shaped.result["content"][0]["text"])
    assert (data["title"], data["rows"]) == (DATA["title"], DATA["rows"])
    assert PICTURE not in texts(shaped.result)


async def test_data_that_is_too_long_for_a_text_is_left_to_the_structured_content(shaper: Shaper) -> None:
    long = {"content": [{"type": "text", "text": "Long."}], "structuredContent": {"rows": ["x" * 100] * 1_000}}
    shaped = await shaper.shape(long, PROFILES["claude-desktop"], owner="me", app=True)
    assert shaped.result["structuredContent"] == long["structuredContent"]
    assert shaped.result["content"][0]["text"].startswith("Long.")
    assert len(texts(shaped.result)) < 45_000
    assert any("too long" in note.text for note in shaped.notes)


async def test_text_and_the_first_text_stay_within_the_hosts_limit_together(shaper: Shaper) -> None:
    profile = PROFILES["claude-desktop"]
    most = profile.text.max_chars
    assert most is not None
    result = {"content": [{"type": "text", "text": "word " * most}], "structuredContent": {"x": "y" * (most // 2)}}
    shaped = await shaper.shape(result, profile, owner="me", app=True)
    assert json.loads(shaped.result["content"][0]["text"]) == result["structuredContent"]
    assert len(texts(shaped.result)) <= most + 500


READERS = {name for name, profile in PROFILES.items() if profile.structured.host in TAKEN_BY_THE_MODEL}


@pytest.mark.parametrize("name", PROFILES)
async def test_data_that_no_text_says_is_compact_json_where_the_model_would_not_read_it_otherwise(
    shaper: Shaper, name: str
) -> None:
    """And no text at all where the host's model reads structured content itself: it would pay for it twice."""
    profile = PROFILES[name]
    data = {"rows": [{"n": 1, "name": "☃"}] * 3}
    strange = {"type": "video", "codec": "av1"}
    result = {"content": [{"type": "text", "text": "Three rows."}, strange], "structuredContent": data}
    shaped = await shaper.shape(result, profile, owner="me", app=True)
    said = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    stands = profile.structured.send == "never" and name not in READERS
    assert texts(shaped.result).count(said) == (stands or profile.apps.data == "text")
    assert "Three rows." in texts(shaped.result)
    assert '"n": ' not in texts(shaped.result)
    assert shaped.envelope.structured_content == data


@pytest.mark.parametrize("name", PROFILES)
async def test_content_is_never_empty_for_the_sake_of_saying_things_once(shaper: Shaper, name: str) -> None:
    profile = PROFILES[name]
    shaped = await shaper.shape({"content": [], "structuredContent": {"n": 2}}, profile, owner="me", app=True)
    if profile.structured.send == "never":
        assert json.loads(texts(shaped.result)) == {"n": 2}


async def test_what_the_model_reads_instead_is_said(shaper: Shaper) -> None:
    shaped = await shaper.shape(RESULT, PROFILES["cursor"], owner="me", app=True)
    [note] = [note.text for note in shaped.notes if note.kind == "app"]
    assert "in place of the content, pictures included" in note
    shaped = await shaper.shape(RESULT, PROFILES["goose"], owner="me", app=True)
    [note] = [note.text for note in shaped.notes if note.kind == "app"]
    assert "in place" not in note


@pytest.mark.parametrize("name", sorted(READERS))
async def test_what_the_model_makes_of_structured_content_is_said_for_every_host_of_which_it_is_known(
    shaper: Shaper, name: str
) -> None:
    """ChatGPT, too: it is sent structured content in any case, and its model reads it in place of the text."""
    shaped = await shaper.shape(RESULT, PROFILES[name], owner="me", app=True)
    said = TAKEN_BY_THE_MODEL[PROFILES[name].structured.host]
    assert any(note.kind == "app" and note.text.endswith(said) for note in shaped.notes)


@pytest.mark.parametrize(
    ("name", "reads"), [("claude-desktop", "goes"), ("cursor", "goes"), ("default", "may go"), ("goose", None)]
)
async def test_data_that_fills_a_models_context_is_warned_of_where_models_read_it(
    shaper: Shaper, name: str, reads: str | None
) -> None:
    result = {"content": [{"type": "text", "text": "A board."}], "structuredContent": {"rows": ["r" * 97] * 7_800}}
    shaped = await shaper.shape(result, PROFILES[name], owner="me", app=True)
    warnings = [note.text for note in shaped.notes if note.text.startswith("warning")]
    assert [text.split(":")[1] for text in warnings] == (
        []
        if reads is None
        else [f" the page's data {reads} to this host's model whole, 780,010 characters (about 176,526 tokens)"]
    )
    shaped = await shaper.shape(RESULT, PROFILES[name], owner="me", app=True)
    assert not any(note.text.startswith("warning") for note in shaped.notes)


async def test_a_failed_result_with_a_picture_keeps_its_flag_where_its_tool_kept_its_output_schema(
    shaper: Shaper,
) -> None:
    """A client fails a call that has neither the flag nor the data that the output schema promises."""
    failed = {"content": RESULT["content"], "isError": True}
    assert "isError" not in (await shaper.shape(failed, PROFILES["default"], owner="me")).result
    shaped = await shaper.shape(failed, PROFILES["default"], owner="me", app=True)
    assert shaped.result["isError"] is True
    assert "structuredContent" not in shaped.result


async def test_content_makes_room_for_the_data_of_the_page(shaper: Shaper) -> None:
    noise = Image.effect_noise((1_200, 900), 90).convert("RGB")
    buffer = io.BytesIO()
    noise.save(buffer, "PNG")
    picture = {"type": "image", "data": base64.b64encode(buffer.getvalue()).decode(), "mimeType": "image/png"}
    result = {"content": [picture], "structuredContent": {"x": "y" * 700_000}}
    shaped = await shaper.shape(result, PROFILES["default"], owner="me", app=True)
    assert shaped.result["structuredContent"] == result["structuredContent"]
    assert len(json.dumps(shaped.result)) <= 1_000_000
    assert [block["type"] for block in shaped.result["content"]][-1] == "image"


@pytest.mark.parametrize("data", [{}, {"structuredContent": {"x": "y" * 300_000}}], ids=["alone", "beside-data"])
@pytest.mark.parametrize("send", ["never", "always"])
async def test_content_makes_room_for_the_meta_of_the_page(shaper: Shaper, data: Any, send: Any) -> None:
    """A host that refuses results that are too long counts all of them, whoever reads which part."""
    profile = PROFILES["default"]
    profile = profile.model_copy(update={"structured": profile.structured.model_copy(update={"send": send})})
    meta = {"example.org/page": "z" * 400_000}
    block_meta = {"example.org/block": "z" * 100_000}
    text = {"type": "text", "text": "word " * 180_000, "_meta": block_meta}
    shaped = await shaper.shape({"content": [text], "_meta": meta, **data}, profile, owner="me", app=True)
    assert shaped.result["_meta"] == meta
    assert len(json.dumps(shaped.result)) <= 1_000_000
    assert len(texts(shaped.result)) > 20_000


async def test_a_page_gets_more_than_the_host_is_known_to_take_and_that_is_said(shaper: Shaper) -> None:
    """What a page is sent cannot be cut: half of it would be of no use to anybody."""
    meta = {"example.org/page": "z" * 1_200_000}
    result = {"content": [{"type": "text", "text": "One."}], "_meta": meta}
    shaped = await shaper.shape(result, PROFILES["default"], owner="me", app=True)
    assert shaped.result["_meta"] == meta
    assert texts(shaped.result) == "One."
    assert any(note.kind == "app" and "1,200,0" in note.text for note in shaped.notes)


HTML = "<!doctype html><title>Chart</title>" + "<p>row</p>" * 5_000
EMBEDDED = {
    "html": {"mimeType": "text/html", "text": HTML},
    "html-as-bytes": {"mimeType": "text/html", "blob": base64.b64encode(HTML.encode()).decode()},
    "app": {"mimeType": "text/html;profile=mcp-app", "text": HTML},
    "address": {"mimeType": "text/uri-list", "text": "# the first is shown\nhttps://example.org/chart?n=1\n"},
    "remote-dom": {"mimeType": "application/vnd.mcp-ui.remote-dom+javascript; framework=react", "text": HTML},
}
"""What servers built with mcp-ui put into a result: https://mcpui.dev/guide/protocol-details"""


def embedding(kind: str, uri: str = "ui://charts/chart/1") -> dict[str, Any]:
    block = {"type": "resource", "resource": {"uri": uri, **EMBEDDED[kind], "_meta": {"mcpui.dev/ui-x": [None]}}}
    return {"content": [{"type": "text", "text": "A chart."}, block]}


@pytest.mark.parametrize("kind", EMBEDDED)
@pytest.mark.parametrize("name", PROFILES)
async def test_an_embedded_page_is_the_upstreams_where_pages_are_shown(shaper: Shaper, name: str, kind: str) -> None:
    profile = for_host(PROFILES[name], shows_apps=True)
    shaped = await shaper.shape(embedding(kind), profile, owner="me")
    assert [block for block in shaped.result["content"] if block["type"] == "resource"] == [
        embedding(kind)["content"][1]
    ]
    assert "A chart." in texts(shaped.result)
    assert "<p>" not in texts(shaped.result)


@pytest.mark.parametrize("kind", EMBEDDED)
@pytest.mark.parametrize("name", PROFILES)
async def test_an_embedded_page_is_a_line_with_a_handle_where_no_page_is_shown(
    shaper: Shaper, name: str, kind: str
) -> None:
    """Unless the host takes embedded resources as they are, or shows these by themselves (`apps.embedded`)."""
    profile = for_host(PROFILES[name], shows_apps=False)
    shaped = await shaper.shape(embedding(kind), profile, owner="me")
    kept = [block for block in shaped.result["content"] if block["type"] == "resource"]
    bytes_too = (
        profile.blob.show == "native" and not profile.blob.types
    )  # of the types that hosts name, none is a page's
    is_native = bytes_too if "blob" in EMBEDDED[kind] else profile.embedded_text.show == "native"
    if profile.apps.embedded == "always" or is_native:
        assert kept
        return
    assert not kept
    said = texts(shaped.result)
    assert "ui://charts/chart/1" in said
    assert "txt_" in said
    assert len(said) < 600
    assert ("https://example.org/chart?n=1" in said) == (kind == "address")


@pytest.mark.parametrize(
    ("uri", "mime"), [("https://example.org/x", "text/html"), ("ui://notes", "text/plain"), ("file:///a", "text/html")]
)
async def test_other_embedded_texts_are_read_as_ever(shaper: Shaper, uri: str, mime: str) -> None:
    block = {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": "Three rows."}}
    for shows in (True, False):
        profile = for_host(PROFILES["default"], shows_apps=shows)
        shaped = await shaper.shape({"content": [block]}, profile, owner="me")
        assert "Three rows." in texts(shaped.result)


@pytest.mark.parametrize("name", PROFILES)
async def test_the_meta_of_an_item_that_stays_is_the_upstreams(shaper: Shaper, name: str) -> None:
    meta = {"example.org/csp": {"connectDomains": ["https://x"], "none": None}, "ui": {"deep": [[1.0]]}}
    text = {"type": "text", "text": "One.", "_meta": meta}
    picture = {"type": "image", "data": PICTURE, "mimeType": "image/png", "_meta": meta}
    for item in (text, picture):
        shaped = await shaper.shape({"content": [item], "structuredContent": {}}, PROFILES[name], owner="me", app=True)
        for block in shaped.result["content"]:
            if block["type"] == item["type"] and block.get("text") in (None, "One."):
                assert json.dumps(block["_meta"]) == json.dumps(meta)

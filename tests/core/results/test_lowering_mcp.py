"""What a profile asks for is what leaves the gateway, with every change noted."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.content.shaping.settle import ROUNDS
from gateway.core.model.effects import (
    ConvertAudio,
    Converted,
    Describe,
    Described,
    DocumentRead,
    Effect,
    Failed,
    FitImage,
    Fitted,
    JsonOutlined,
    Keep,
    Kept,
    LinkRead,
    Outcome,
    OutlineJson,
    Probe,
    Probed,
    ReadDocument,
    ReadLink,
    Rendered,
    RenderPages,
    WriteFile,
    Written,
)
from gateway.core.model.media_types import PixelSize
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import decide
from gateway.core.results.decisions.budget import share
from gateway.core.results.json_outline import json_outlines
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import Lowered, lower
from gateway.core.results.rescue import rescue

HOST = {
    "rescue": True,
    "text": {"empty": "named"},
    "image": {"types": ("image/png", "image/jpeg"), "max_edge": 2000, "max_count": 8, "caption": "moved"},
    "audio": {"show": "line"},
    "document": {"show": "line"},
    "blob": {"show": "line", "image_as_image": True},
    "embedded_text": {"show": "text"},
    "link": {"show": "line"},
    "unknown": {"show": "line"},
    "structured": {"send": "never"},
    "tools": {"helpers": True},
}


def profile(**changes: Any) -> Profile:
    merged = {
        key: {**HOST.get(key, {}), **value} if isinstance(value, dict) else value for key, value in changes.items()
    }
    return Profile.model_validate({"name": "test", **HOST, **merged})


def png(width: int, height: int, size: int = 200) -> str:
    """Base64 of something with a PNG's header, its end and a given number of bytes; the rules never decode more."""
    header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4) + height.to_bytes(4)
    end = b"\0\0\0\0IEND\xaeB`\x82"
    return base64.b64encode(header + bytes(max(0, size - len(header) - len(end))) + end).decode()


SMALL = png(40, 30)
SVG = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg" width="80" height="60"/>').decode()
WAV = base64.b64encode(b"RIFF\x64\0\0\0WAVEfmt " + bytes(100)).decode()
PDF = base64.b64encode(b"%PDF-1.4\n" + bytes(100)).decode()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def image(data: str = SMALL, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type, **more}


def blob(data: str, uri: str = "doc://a.pdf", **more: Any) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "blob": data, **more}}


def perform(effect: Effect) -> Outcome:
    """What the edges would answer, as plain values: images scaled to the target, content kept under its key."""
    match effect:
        case Keep():
            return Kept(f"kept_{effect.key.replace(':', '')}")
        case FitImage():
            size = effect.target.max_bytes or 3_000
            edge = min(effect.target.max_edge or 400, 400)
            return Fitted(png(edge, edge // 2, size), "image/png", PixelSize(edge, edge // 2), PixelSize(4000, 2000))
        case ReadDocument():
            return DocumentRead(3, ("one", "", "three")[: effect.max_pages], "A Title")
        case RenderPages():
            size = min(effect.target.max_bytes or 60_000, 60_000)
            page = Fitted(png(600, 800, size), "image/png", PixelSize(600, 800), PixelSize(600, 800))
            return Rendered(tuple(page for _ in effect.pages))
        case ConvertAudio():
            kind = (effect.target.types or (effect.media_type,))[0]
            return Converted(WAV[:-8] + "AAAAAAAA", kind, min(8.0, effect.target.max_seconds or 8), 8.0)
        case Probe():
            return Probed(2.5, "pcm_s16le", 1, 8_000)
        case OutlineJson():
            return JsonOutlined(json_outlines(base64.b64decode(effect.data).decode("utf-8")))
        case Describe():
            return Described("A red square.", "eyes")
        case ReadLink():
            return LinkRead(({"uri": effect.uri, "blob": SMALL},))
        case WriteFile():
            return Written(f"/shared/{effect.key.replace(':', '')}")


def shape(result: dict[str, Any], host: Profile, failing: str = "", describes: tuple[str, ...] = ()) -> Lowered:
    envelope = lift(result)
    envelope = rescue(envelope) if host.rescue else envelope
    outcomes: dict[str, Outcome] = {}
    for _ in range(ROUNDS):
        wanted = tuple(decide(envelope, host, outcomes, describes).wanted.values())
        if not wanted:
            return lower(envelope, host, decide(envelope, host, outcomes, describes))
        for effect in wanted:
            broken = failing and effect.key.startswith(failing)
            outcomes[effect.key] = Failed("it broke") if broken else perform(effect)
    pytest.fail("planning did not come to an end")


def seen(lowered: Lowered) -> list[str]:
    return [
        block.get("text") or f"<{block['type']} {block.get('mimeType', '')}>" for block in lowered.result["content"]
    ]


def test_what_a_host_shows_stays_as_it_is_and_in_order() -> None:
    content = [text("a"), image(_meta={"k": 1}, annotations={"priority": 1}), text("b"), image(png(50, 60))]
    lowered = shape({"content": content, "_meta": {"m": 1}}, profile())
    assert lowered.result == {"content": content, "_meta": {"m": 1}}
    assert lowered.notes == ()


def test_a_wrong_type_is_put_right_without_touching_the_bytes() -> None:
    lowered = shape({"content": [image(media_type="application/octet-stream")]}, profile())
    assert lowered.result["content"] == [image()]
    assert [note.kind for note in lowered.notes] == ["mended"]


def test_a_large_image_is_scaled_and_the_scale_told() -> None:
    assert seen(shape({"content": [image(png(4000, 2000))]}, profile())) == [
        "[image 1: 4000x2000, shown at 400x200, multiply coordinates by 10.00 for the original; "
        'for details call gateway_view with handle "kept_keep0"]',
        "<image image/png>",
    ]


def test_a_type_that_the_host_does_not_take_is_converted() -> None:
    lowered = shape({"content": [image(SVG, "image/svg+xml")]}, profile())
    assert seen(lowered)[-1] == "<image image/png>"
    assert {note.kind for note in lowered.notes} == {"resized", "converted"}


def test_an_image_that_cannot_be_converted_becomes_a_line() -> None:
    assert seen(shape({"content": [image(SVG, "image/svg+xml")]}, profile(), failing="fit")) == [
        "[image 1: image/svg+xml, 80x60, 64 bytes (it broke); handle kept_keep0]"
    ]


def test_a_store_that_fails_costs_only_the_handle() -> None:
    assert seen(shape({"content": [blob(PDF)]}, profile(), failing="keep")) == [
        "[document 1: doc://a.pdf, application/pdf, 109 bytes (it could not be kept: it broke)]"
    ]


def test_a_host_without_images_gets_a_line_for_each() -> None:
    assert seen(shape({"content": [text("a"), image()]}, profile(image={"show": "line"}))) == [
        "a",
        "[image 1: image/png, 40x30, 200 bytes (this host does not show images to its model); handle kept_keep1]",
    ]


def test_images_beyond_the_count_become_lines() -> None:
    lowered = shape({"content": [image(png(9, 9, 100 + n)) for n in range(4)]}, profile(image={"max_count": 2}))
    assert [line[:9] for line in seen(lowered)] == ["<image im", "<image im", "[image 3:", "[image 4:"]


def test_sound_and_documents_become_lines() -> None:
    lowered = shape({"content": [{"type": "audio", "data": WAV, "mimeType": "audio/x-wav"}, blob(PDF)]}, profile())
    assert seen(lowered) == [
        "[audio 1: audio/wav, 2.5 s, pcm_s16le, mono, 8 kHz, 116 bytes; handle kept_keep0]",
        '[document 1: doc://a.pdf, application/pdf, 109 bytes; open it with gateway_view, handle "kept_keep1"]',
    ]


def test_documents_of_a_type_that_the_host_takes_stay() -> None:
    lowered = shape({"content": [blob(PDF)]}, profile(document={"show": "native"}))
    assert lowered.result["content"] == [blob(PDF)]


def test_an_embedded_image_is_shown_as_an_image() -> None:
    assert seen(shape({"content": [blob(SMALL, "file:///a.png")]}, profile())) == [
        "[image 1: resource <file:///a.png>]",
        "<image image/png>",
    ]


def test_an_embedded_text_becomes_text_with_its_address() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a.md", "mimeType": "text/markdown", "text": "# Hi"}}
    assert seen(shape({"content": [resource]}, profile())) == ["[resource <file:///a.md> (text/markdown)]\n# Hi"]


def test_a_link_becomes_a_line() -> None:
    link = {"type": "resource_link", "uri": "doc://1", "name": "one\x1b[31m", "mimeType": "text/plain", "size": 12}
    assert seen(shape({"content": [link]}, profile())) == [
        "[link one [31m <doc://1> (text/plain, 12 bytes); read it with gateway_read, uri]"
    ]


def test_an_unknown_block_is_kept_and_named() -> None:
    assert seen(shape({"content": [{"type": "video", "data": "xyz"}]}, profile())) == [
        "[content 1: application/json, 29 characters (block of type video); "
        'open it with gateway_read, handle "kept_keep0"]'
    ]


@pytest.mark.parametrize("broken", [image(data="no base64!"), blob("no base64!"), image(png(1, 1)[:4] + "!")])
def test_broken_base64_is_named(broken: dict[str, Any]) -> None:
    (line,) = seen(shape({"content": [broken]}, profile()))
    assert "its data is not base64" in line


def test_bytes_that_are_no_image_are_not_called_one() -> None:
    noise = base64.b64encode(bytes(range(200))).decode()
    (line,) = seen(shape({"content": [image(noise)]}, profile(image={"types": ("image/png",)})))
    assert line == "[image 1: unknown type, 200 bytes (no known image format); handle kept_keep0]"


# -- order, markers, captions -----------------------------------------------------------------------


def test_text_first_leaves_a_marker_where_an_image_stood() -> None:
    content = [text("a"), image(), text("b"), image(png(50, 60))]
    assert seen(shape({"content": content}, profile(order="text-first"))) == [
        "a",
        "[image 1: 40x30]",
        "b",
        "[image 2: 50x60]",
        "[image 1]",
        "<image image/png>",
        "[image 2]",
        "<image image/png>",
    ]


def test_merged_text_is_one_block_with_everything_that_was_said() -> None:
    link = {"type": "resource_link", "uri": "doc://1", "name": "one"}
    content = [text("a"), image(), link, text(""), text("b")]
    lowered = shape({"content": content, "structuredContent": {"x": 1}}, profile(text={"merge": True}))
    assert seen(lowered) == [
        'a\n[image 1: 40x30]\n[link one <doc://1>; read it with gateway_read, uri]\nb\n{"x":1}',
        "<image image/png>",
    ]


def test_captions_can_stand_before_every_image() -> None:
    assert seen(shape({"content": [image()]}, profile(image={"caption": "always"}))) == [
        "[image 1: 40x30]",
        "<image image/png>",
    ]


# -- structured content -----------------------------------------------------------------------------


def test_structured_content_alone_becomes_text() -> None:
    lowered = shape({"content": [], "structuredContent": {"a": [1]}}, profile())
    assert seen(lowered) == ['{"a":[1]}']
    assert "structuredContent" not in lowered.result


@pytest.mark.parametrize(
    ("content", "structured"),
    [
        ([text('{"a": 1}')], {"a": 1}),
        ([text("hello")], {"result": "hello"}),
        ([text("3")], {"result": 3}),
        ([text("x"), text('{"b":2}')], {"result": ["x", {"b": 2}]}),
        ([image()], {"content": [image()]}),
        ([text("t"), image()], {"content": [image()]}),
        ([text("t")], {"content": "t"}),
        ([text("t")], None),
    ],
)
def test_what_a_block_says_already_is_not_repeated(content: list[Any], structured: Any) -> None:
    lowered = shape({"content": content, "structuredContent": structured}, profile())
    assert lowered.result["content"] == content


@pytest.mark.parametrize("structured", [{"a": 2}, {"result": "other"}, {"content": [image(png(5, 5))]}, [1], "word"])
def test_what_no_block_says_is_added(structured: Any) -> None:
    lowered = shape({"content": [text('{"a": 1}')], "structuredContent": structured}, profile(rescue=False))
    assert json.loads(lowered.result["content"][-1]["text"]) == structured


ROWS = {"rows": [{"n": n, "name": "größe"} for n in range(40)]}
COMPACT = json.dumps(ROWS, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("value", [ROWS, {"a": [1, {"b": None}]}, [], ["x" * 30_000, *range(30_000)]])
def test_structured_content_as_text_has_no_blank_that_says_nothing(value: Any) -> None:
    sent = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert shape({"content": [], "structuredContent": value}, profile()).result["content"] == [text(sent)]


def test_structured_content_that_just_fits_is_not_cut() -> None:
    host = profile(text={"empty": "named", "max_chars": len(COMPACT)})
    lowered = shape({"content": [], "structuredContent": ROWS}, host)
    assert lowered.result["content"] == [text(COMPACT)]
    assert not [note for note in lowered.notes if note.kind == "cut"]


@pytest.mark.parametrize("indent", [None, 1, 2, 4])
def test_json_that_a_server_wrote_as_text_stays_as_it_is(indent: int | None) -> None:
    own = text(json.dumps(ROWS, indent=indent))
    assert shape({"content": [own], "structuredContent": ROWS}, profile()).result["content"] == [own]


def test_structured_content_goes_along_where_the_host_wants_it() -> None:
    result = {"content": [text("x")], "structuredContent": {"a": 1}}
    assert shape(result, profile(structured={"send": "always"})).result == result


# -- errors -----------------------------------------------------------------------------------------

FAILED = {"content": [text("it failed"), image()], "isError": True}


def test_an_error_keeps_its_flag_and_its_image() -> None:
    assert shape(FAILED, profile()).result == FAILED


def test_an_error_is_said_in_text_where_the_flag_would_cost_the_image() -> None:
    lowered = shape(FAILED, profile(error={"media": "unflag"}))
    assert lowered.result == {"content": [text("ERROR: it failed"), image()]}
    assert any("error flag" in note.text for note in lowered.notes)


def test_an_error_without_media_keeps_its_flag_there() -> None:
    result = {"content": [text("it failed")], "isError": True}
    assert shape(result, profile(error={"media": "unflag"})).result == result


def test_an_error_image_becomes_a_line_where_it_would_be_dumped() -> None:
    lowered = shape(FAILED, profile(error={"media": "line"}))
    assert lowered.result["isError"] is True
    assert seen(lowered)[1].startswith(
        "[image 1: image/png, 40x30, 200 bytes (this host does not show images of failed"
    )


def test_a_prefix_is_added_once_and_also_without_text() -> None:
    host = profile(error={"prefix": True})
    assert seen(shape({"content": [text("Error: no")], "isError": True}, host)) == ["Error: no"]
    assert seen(shape({"content": [image()], "isError": True}, host))[0].startswith("ERROR: ")
    assert seen(shape({"content": [], "isError": True}, host)) == ["ERROR: [The tool failed without saying why.]"]


# -- nothing empty ----------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [{}, {"content": []}, {"content": [text("")]}, {"content": None}])
def test_an_empty_result_says_so(result: dict[str, Any]) -> None:
    assert seen(shape(result, profile())) == ["[The tool returned no content.]"]


def test_an_audience_is_respected_only_on_request() -> None:
    content = [
        text("for the model"),
        image(annotations={"audience": ["user"]}),
        text("u", annotations={"audience": ["user"]}),
    ]
    assert shape({"content": content}, profile()).result["content"] == content
    assert [
        "meant for the user only" in line for line in seen(shape({"content": content}, profile(audience="respect")))
    ] == [
        False,
        True,
        True,
    ]


# -- budgets ----------------------------------------------------------------------------------------


def test_long_text_keeps_head_and_tail_and_says_how_to_read_on() -> None:
    whole = "\n".join(f"line {number}" for number in range(10_000))
    lowered = shape({"content": [text(whole)]}, profile(text={"max_chars": 5_000}))
    (words,) = seen(lowered)
    assert len(words) <= 5_000
    head, rest = words.split("\n[… ", 1)
    assert whole.startswith(head)
    assert whole.endswith(rest.split(" …]\n", 1)[1])
    assert f'gateway_read, handle "kept_text0", offset {len(head)}' in rest


def test_short_texts_stay_whole_beside_a_long_one() -> None:
    content = [text("short"), text("x" * 9_000), text("also short")]
    lowered = shape({"content": content}, profile(text={"max_chars": 2_000}))
    assert seen(lowered)[0] == "short"
    assert seen(lowered)[2] == "also short"


def test_images_share_what_the_result_may_hold() -> None:
    content = [text("t"), image(png(50, 50, 20_000)), image(png(60, 60, 400_000)), image(png(70, 70, 900_000))]
    lowered = shape({"content": content}, profile(limits={"result_chars": 500_000}))
    sizes = [len(block["data"]) for block in lowered.result["content"] if block["type"] == "image"]
    assert len(json.dumps(lowered.result)) <= 500_000
    assert sizes[0] == len(content[1]["data"])
    assert sizes[1] == sizes[2] > 200_000


def test_media_is_not_dropped_to_make_room_for_text() -> None:
    content = [text("word " * 100_000), image(png(50, 50, 20_000))]
    lowered = shape({"content": content}, profile(text={"max_chars": 40_000}, limits={"result_chars": 100_000}))
    assert seen(lowered)[-1] == "<image image/png>"


def test_a_document_too_large_for_the_result_becomes_a_line() -> None:
    content = [blob(base64.b64encode(b"%PDF-1.4\n" + bytes(90_000)).decode())]
    host = profile(document={"show": "native"}, limits={"result_chars": 50_000})
    assert "too large for one result" in seen(shape({"content": content}, host))[0]


def test_a_small_limit_holds_for_text_full_of_escapes() -> None:
    host = profile(image={"show": "line"}, text={"max_chars": 6_500}, limits={"result_chars": 7_500})
    for words in ('"' * 60_000, "\n\t" * 40_000, "\x00" * 20_000, "ü" * 30_000):
        lowered = shape({"content": [text(words)] * 3}, host)
        assert len(json.dumps(lowered.result, ensure_ascii=False)) <= 7_500


@given(st.dictionaries(st.integers(0, 20), st.integers(0, 10_000), max_size=8), st.integers(-5, 30_000))
def test_shares_are_fair(sizes: dict[int, int], room: int) -> None:
    shares = share(sizes, room)
    assert shares.keys() == sizes.keys()
    assert all(shares[key] <= sizes[key] for key in sizes)
    assert sum(shares.values()) <= max(0, room)
    cut = [shares[key] for key in sizes if shares[key] < sizes[key]]
    assert not cut or max(cut) - min(cut) <= 1
    assert not cut or all(shares[key] <= min(cut) + 1 for key in sizes if shares[key] == sizes[key])


BLOCKS = st.sampled_from(
    [
        text("words"),
        text(""),
        text("long " * 500),
        text(f"![x](data:image/png;base64,{SMALL})"),
        image(),
        image(png(3000, 50)),
        image(png(30, 50, 60_000)),
        image(SVG, "image/svg+xml"),
        image("broken!"),
        blob(PDF),
        blob(SMALL),
        image(PDF),
        blob(WAV, "doc://a.wav"),
        blob(base64.b64encode(b"a,b\n1,2").decode(), "doc://a.csv", mimeType="text/csv"),
        {"type": "resource_link", "uri": "a:b.png", "name": "n", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
        {"type": "resource_link", "uri": "a:b", "name": "n"},
        {"type": "audio", "data": WAV, "mimeType": "audio/wav"},
        {"type": "video"},
        7,
    ]
)
HOSTS = st.builds(
    profile,
    order=st.sampled_from(["kept", "text-first"]),
    audience=st.sampled_from(["ignore", "respect"]),
    text=st.fixed_dictionaries({"merge": st.booleans(), "max_chars": st.sampled_from([None, 500, 5_000])}),
    image=st.fixed_dictionaries(
        {
            "show": st.sampled_from(["native", "line", "file"]),
            "animation": st.sampled_from(["kept", "first-frame"]),
            "caption": st.sampled_from(["never", "moved", "always"]),
            "max_count": st.sampled_from([None, 1, 3]),
        }
    ),
    audio=st.fixed_dictionaries(
        {"show": st.sampled_from(["native", "line", "file"]), "max_seconds": st.sampled_from([None, 3])}
    ),
    document=st.fixed_dictionaries(
        {
            "show": st.sampled_from(["native", "text", "pages", "line", "file"]),
            "max_pages": st.sampled_from([None, 1, 2]),
        }
    ),
    blob=st.fixed_dictionaries({"show": st.sampled_from(["native", "line", "file"]), "audio_as_audio": st.booleans()}),
    link=st.fixed_dictionaries({"show": st.sampled_from(["native", "line", "inline"])}),
    error=st.fixed_dictionaries({"media": st.sampled_from(["keep", "unflag", "line"]), "prefix": st.booleans()}),
    structured=st.fixed_dictionaries({"send": st.sampled_from(["always", "never"])}),
    limits=st.fixed_dictionaries({"result_chars": st.sampled_from([None, 60_000])}),
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(BLOCKS, max_size=5),
    st.booleans(),
    st.sampled_from([None, {"a": SMALL}, {"b": 1}]),
    HOSTS,
    st.sampled_from(["", "fit", "read", "pages", "refit", "sound", "file", "link", "describe", "keep"]),
    st.sampled_from([(), ("image", "audio")]),
)
def test_every_result_is_whole_for_every_host(
    content: list[Any], is_error: bool, structured: Any, host: Profile, failing: str, describes: tuple[str, ...]
) -> None:
    result: dict[str, Any] = {"content": content, "isError": is_error}
    if structured is not None:
        result["structuredContent"] = structured
    lowered = shape(result, host, failing, describes)
    blocks = lowered.result["content"]
    assert blocks or "structuredContent" in lowered.result
    assert all(block.get("text") != "" for block in blocks)
    texts = " ".join(block["text"] for block in blocks if block.get("type") == "text")
    assert SMALL not in texts
    shown = [block for block in blocks if block.get("type") == "image"]
    assert all(block["mimeType"] in ("image/png", "image/jpeg") for block in shown)
    assert host.image.show == "native" or not shown
    assert host.image.max_count is None or len(shown) <= host.image.max_count
    if is_error:
        assert lowered.result.get("isError") is True or "error" in texts.lower()
    if host.limits.result_chars:
        assert len(json.dumps(lowered.result, ensure_ascii=False)) <= host.limits.result_chars
    assert shape(result, host, failing, describes) == lowered

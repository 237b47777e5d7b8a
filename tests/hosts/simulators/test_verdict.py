"""Judging what a host showed: which images of the original its model sees."""

import base64
import io
import json
import random
from functools import partial
from typing import Any

import pytest
from PIL import Image

from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.originals import expected_images, original_images
from gateway.hosts.simulators.seen import Form, Seen, SeenAudio, SeenDocument, SeenImage, SeenPart, SeenText
from gateway.hosts.simulators.verdict import Verdict, judge_seen

CODEX = SIMULATORS["codex"]
CLINE = SIMULATORS["cline"]
SVG = b'<?xml version="1.0"?>\n<!-- drawn --><svg viewBox="0 0 300 200"><circle r="9" fill="red"/></svg>'


def _encode(image: Image.Image, kind: str = "PNG") -> str:
    out = io.BytesIO()
    image.save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


def _drawing(seed: int, size: tuple[int, int] = (300, 200)) -> Image.Image:
    tiny = Image.frombytes("RGB", (6, 4), random.Random(seed).randbytes(72))
    return tiny.resize(size, Image.Resampling.BICUBIC)


FIRST, SECOND = _drawing(1), _drawing(2)


def _image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type}


def _result(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"content": list(blocks), **more}


def _sees(*images: Image.Image, kind: str = "PNG") -> Seen:
    return Seen(tuple(SeenImage(_encode(one, kind), f"image/{kind.lower()}", one.size) for one in images))


def _judged(result: dict[str, Any], seen: Seen) -> Verdict:
    return judge_seen(result, seen, CODEX)


def test_an_image_is_found_wherever_it_stands() -> None:
    data = [_encode(_drawing(seed)) for seed in range(4)]
    svg = base64.b64encode(SVG).decode()
    result = _result(
        _image(data[0]),
        {"type": "resource", "resource": {"uri": "x:1", "blob": data[1], "mimeType": "application/octet-stream"}},
        {"type": "text", "text": f"see ![plot](data:image/png;base64,{data[2]}) above"},
        _image(svg, "image/svg+xml"),
        structuredContent={"plots": [{"png": data[3]}]},
    )
    assert [image.data for image in original_images(result)] == [data[0], data[1], data[2], svg, data[3]]


def test_the_same_image_twice_is_expected_once() -> None:
    data = _encode(FIRST)
    wrapped = "\n".join(data[at : at + 76] for at in range(0, len(data), 76))
    result = _result(_image(data), _image(data), structuredContent={"again": data, "wrapped": wrapped})
    assert len(original_images(result)) == 1


@pytest.mark.parametrize(
    "block",
    [
        _image(base64.b64encode(b"no image at all").decode()),
        _image("not base64!"),
        {"type": "audio", "data": base64.b64encode(b"RIFF0000WAVE").decode(), "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "x:1", "name": "a.png", "mimeType": "image/png"},
        {"type": "text", "text": "words " * 400},
    ],
)
def test_nothing_is_expected_of_what_is_no_image(block: dict[str, Any]) -> None:
    assert original_images(_result(block)) == ()


def test_a_host_without_images_is_expected_to_show_none() -> None:
    assert expected_images(_result(_image(_encode(FIRST))), CLINE) == ()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_an_image_is_seen_when_it_arrives_smaller_and_in_another_format(kind: str) -> None:
    verdict = _judged(_result(_image(_encode(FIRST))), _sees(FIRST.resize((150, 100)), kind=kind))
    assert (verdict.shown, verdict.expected, verdict.problems) == (1, 1, ())


def test_a_transparent_image_is_seen_when_it_arrives_on_white() -> None:
    clear = FIRST.convert("RGBA")
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))
    white = Image.new("RGBA", clear.size, "white")
    white.alpha_composite(clear)
    assert _judged(_result(_image(_encode(clear))), _sees(white.convert("RGB"), kind="JPEG")).is_good


def test_a_vector_image_is_seen_when_a_drawing_of_its_shape_arrives() -> None:
    result = _result(_image(base64.b64encode(SVG).decode(), "image/svg+xml"))
    assert _judged(result, _sees(FIRST)).is_good
    assert not _judged(result, _sees(Image.new("RGB", (300, 200), "white"))).is_good
    assert not _judged(result, _sees(FIRST.resize((200, 200)))).is_good


def test_a_vector_image_is_seen_as_it_is_where_the_host_can_draw_it() -> None:
    result = _result(_image(base64.b64encode(SVG).decode(), "image/svg+xml"))
    for name, is_seen in [("inspector", True), ("gemini-cli", False)]:
        host = SIMULATORS[name]
        assert judge_seen(result, host.see(result, None), host).is_good == is_seen


def test_another_picture_in_its_place_is_no_image_seen() -> None:
    verdict = _judged(_result(_image(_encode(FIRST))), _sees(SECOND))
    assert verdict.problems == ("not seen: image/png from content[0]",)


def test_one_picture_cannot_stand_for_two() -> None:
    verdict = _judged(_result(_image(_encode(FIRST)), _image(_encode(SECOND))), _sees(SECOND))
    assert (verdict.shown, verdict.expected) == (1, 2)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [(_encode(FIRST), "image/jpeg"), (_encode(FIRST)[:400], "image/png"), (_encode(FIRST, "TIFF"), "image/tiff")],
)
def test_an_image_that_no_model_api_takes_is_not_seen(data: str, media_type: str) -> None:
    seen = Seen((SeenImage(data, media_type, None),))
    assert _judged(_result(_image(_encode(FIRST))), seen).shown == 0


def test_base64_as_text_is_a_problem_even_where_the_image_is_seen() -> None:
    data = _encode(FIRST)
    seen = Seen((*_sees(FIRST).parts, SeenText(data, "json")))
    verdict = _judged(_result(_image(data)), seen)
    assert (verdict.shown, verdict.leak, verdict.is_good) == (1, len(data), False)


def test_a_host_that_fails_is_a_problem() -> None:
    verdict = _judged(_result(structuredContent={"a": 1}), Seen((SeenText("no", "error"),), error="no"))
    assert verdict.problems == ("the host failed: no", "not read: 1")


def test_a_text_that_does_not_arrive_is_a_problem() -> None:
    result = _result({"type": "text", "text": "Lisbon:  17 °C\nCairo: 22 °C"}, _image(_encode(FIRST)))
    assert _judged(result, _sees(FIRST)).problems == ("not read: Lisbon 17",)
    assert _judged(result, Seen((SeenText('{"text":"Lisbon:  17 \\u00b0C"}'), *_sees(FIRST).parts))).is_good


def test_a_link_that_does_not_arrive_is_a_problem() -> None:
    result = _result({"type": "resource_link", "uri": "doc://tides/2026", "name": "tides"})
    assert _judged(result, Seen((SeenText("see tides"),))).problems == ("not read: doc tides 2026",)
    assert _judged(result, Seen((SeenText("[link tides <doc://tides/2026>]"),))).is_good


def test_an_embedded_page_is_read_or_named_by_its_uri() -> None:
    page = {"uri": "ui://cards/1", "mimeType": "text/html", "text": "<h1>The tides</h1>"}
    result = _result({"type": "text", "text": "A card."}, {"type": "resource", "resource": page})
    for words in ("A card. <h1>The tides</h1>", "A card. [page 1: text/html (ui://cards/1, not shown here)]"):
        assert _judged(result, Seen((SeenText(words),))).is_good
    assert _judged(result, Seen((SeenText("A card."),))).problems == ("not read: h1 The tides h1",)


def test_in_short_everything_that_is_not_read_is_one_problem() -> None:
    result = _result({"type": "text", "text": "A card."}, structuredContent={"rows": ["tides", "tides", "moon"]})
    verdict = _judged(result, Seen((SeenText("A card."),)))
    assert verdict.problems == ("not read: tides", "not read: moon")
    assert verdict.problems_in_short == ('not read: what begins with "tides", and 1 more',)
    assert _judged(result, Seen()).problems_in_short == ("nothing arrives",)


def test_a_text_that_hides_an_image_need_not_arrive_as_text() -> None:
    data = _encode(FIRST)
    for text in (data, f"data:image/png;base64,{data}", f"![plot](data:image/png;base64,{data})"):
        assert _judged(_result({"type": "text", "text": text}), _sees(FIRST)).is_good


def test_an_error_must_be_told_by_the_flag_or_in_words() -> None:
    result = _result({"type": "text", "text": "4 values are bad"}, isError=True)
    assert judge_seen(result, CODEX.see(result, None), CODEX).is_silent
    assert judge_seen(result, CLINE.see(result, None), CLINE).is_good
    assert _judged(result, Seen((SeenText("ERROR: 4 values are bad"),))).is_good


def test_a_result_of_which_nothing_arrives_is_a_problem_unless_it_was_empty() -> None:
    frame = Seen((SeenText("Output:", "frame"),))
    assert _judged(_result(structuredContent={"a": 1}), frame).problems == ("not read: 1", "nothing arrives")
    assert _judged(_result(), frame).is_good


def test_where_no_image_can_be_shown_each_must_be_named_in_a_line() -> None:
    result = _result(_image(_encode(FIRST)), _image(_encode(SECOND)))
    one = '[image 1: image/png, 300x200; open it with gateway_view, handle "h1"]'
    both = CLINE.see(_result({"type": "text", "text": f"{one}\nand\n{one.replace('1', '2', 1)}"}), None)
    assert judge_seen(result, both, CLINE).is_good
    only_one = CLINE.see(_result({"type": "text", "text": one}), None)
    assert judge_seen(result, only_one, CLINE).problems == ("neither shown nor named: 1 of 2 images",)


def test_every_simulated_host_is_known_under_its_own_name() -> None:
    assert all(host.name == name and host.client_info["name"] for name, host in SIMULATORS.items())


SOUND = {"type": "audio", "data": base64.b64encode(b"RIFF0000WAVEfmt ").decode(), "mimeType": "audio/wav"}
FILE = {
    "type": "resource",
    "resource": {"uri": "x:1", "blob": base64.b64encode(b"%PDF-1.4").decode(), "mimeType": "application/pdf"},
}
BROKEN = _image(base64.b64encode(b"no image at all").decode())


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (SOUND, SeenAudio(SOUND["data"], "audio/wav")),
        (SOUND, SeenText("[audio 1: audio/wav, 2.0 s; handle h1]")),
        (FILE, SeenDocument(FILE["resource"]["blob"], "application/pdf", "beside it")),
        (
            FILE,
            SeenText('[document 1: application/pdf, 3 pages; handle "h1"]\n[page 1 of 3]'),
        ),
        (BROKEN, SeenText("[image 1: image/png (not an image that can be read); handle h1]")),
    ],
)
def test_what_is_no_image_is_to_be_shown_or_named(block: dict[str, Any], part: SeenPart) -> None:
    assert _judged(_result(block), Seen((part,))).is_good
    both = _judged(_result(block, block), Seen((part,)))
    assert both.problems == (f"neither shown nor named: content[1] ({block['type']})",)
    assert both.lacks_only_media


@pytest.mark.parametrize("form", ["placeholder", "file", "frame"])
def test_a_hosts_own_placeholder_names_nothing(form: Form) -> None:
    verdict = _judged(_result({"type": "text", "text": "a tone"}, SOUND), Seen((SeenText("[audio 1: a tone]", form),)))
    assert verdict.unnamed == ("content[1] (audio)",)


def test_structured_values_are_to_be_read() -> None:
    result = _result(structuredContent={"harbour": "Falmouth", "depth": [41, 7.5], "open": True})
    assert _judged(result, Seen((SeenText('{"harbour": "Falmouth", "depth": [41, 7.5]}'),))).is_good
    assert _judged(result, Seen((SeenText('{"harbour": "Falmouth"}'),))).lost == ("41",)


def test_blocks_that_structured_content_repeats_are_no_values() -> None:
    block = {"type": "text", "text": "PROSE about the harbour"}
    result = _result(block, _image(_encode(FIRST)))
    repeated = {**result, "structuredContent": {"content": [*result["content"], FILE, SOUND]}}
    assert _judged(repeated, Seen((SeenText(block["text"]), *_sees(FIRST).parts))).is_good


def test_json_that_is_handed_on_as_a_document_is_read() -> None:
    data = base64.b64encode(b'{"harbour":"Falmouth"}').decode()
    seen = Seen((SeenDocument(data, "application/json"),))
    assert _judged(_result(structuredContent={"harbour": "Falmouth"}), seen).is_good


def test_only_the_first_structured_values_are_looked_for() -> None:
    result = _result(structuredContent={"rows": [f"row {number}" for number in range(100)]})
    assert _judged(result, Seen((SeenText(" ".join(f"row {number}" for number in range(8))),))).is_good


def test_a_text_that_is_read_twice_is_a_problem() -> None:
    text = "PROSE about the harbour"
    result = _result({"type": "text", "text": text})
    assert _judged(result, Seen((SeenText(text),))).is_good
    assert _judged(result, Seen((SeenText(text), SeenText(text)))).problems == (f"read more than once: {text}",)
    assert _judged(_result(*result["content"] * 2), Seen((SeenText(text), SeenText(text)))).is_good


def test_structured_content_is_another_text_unless_it_is_the_twin_of_one() -> None:
    value = {"about": "PROSE about the harbour"}
    dumped = json.dumps(value)
    twice = Seen((SeenText(dumped), SeenText(dumped)))
    twin = _judged(_result({"type": "text", "text": dumped}, structuredContent=value), twice)
    assert twin.problems == ("read more than once: PROSE about the harbour",)
    moment = json.dumps({"at": "2026-11-28T13:44:15.403Z"})
    seen = Seen((SeenText(moment), SeenText(moment)))
    told = _judged(_result({"type": "text", "text": moment}, structuredContent=json.loads(moment)), seen)
    assert told.problems == ("read more than once: 2026-11-28T13:44:15.403Z",)
    other = _result({"type": "text", "text": "PROSE about the harbour"}, structuredContent=value)
    assert _judged(other, Seen((SeenText("PROSE about the harbour"), SeenText(dumped)))).is_good


def test_structured_content_whose_values_are_all_short_is_recognised_by_its_beginning() -> None:
    value = {"rows": [{"id": name, "part": 25} for name in ("sales", "ops", "rent", "tax")]}
    result = _result({"type": "text", "text": "A budget of four parts"}, structuredContent=value)
    once = (SeenText("A budget of four parts"), SeenText(json.dumps(value)))
    assert _judged(result, Seen(once)).is_good
    twice = _judged(result, Seen((SeenText(json.dumps(value, separators=(",", ":"))), *once)))
    beginning = '{"rows": [{"id": "sales", "part": 25}, {"id": "ops", "part":'
    assert twice.problems == (f"read more than once: {beginning}",)
    assert twice.is_only_repeated


@pytest.mark.parametrize("write", [json.dumps, partial(json.dumps, sort_keys=True), partial(json.dumps, indent=2)])
@pytest.mark.parametrize("read", [json.dumps, partial(json.dumps, ensure_ascii=False, separators=(",", ":"))])
@pytest.mark.parametrize("name", ["Zürich", "Zürich Hauptbahnhof platform nine"])
def test_however_data_is_written_what_is_read_once_is_not_read_twice(name: str, read: Any, write: Any) -> None:
    value = {"name": name, "id": 7, "lines": ["S3", "S9", "IC 1"], "at": 21.0}
    result = _result({"type": "text", "text": write(value)}, structuredContent=value)
    assert not _judged(result, Seen((SeenText(read(value)),))).again
    assert not _judged(result, Seen((SeenText(write(value)),))).again
    assert _judged(result, Seen((SeenText(read(value)), SeenText(write(value))))).again

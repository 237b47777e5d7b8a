"""Media that no model could see becomes blocks; nothing else changes, and nothing is shown twice."""

import base64
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gateway.core.model.envelope import Envelope
from gateway.core.results.lift_result import lift
from gateway.core.results.rescue import rescue


def png(colour: str) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (9, 7), colour).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


RED, BLUE = png("red"), png("blue")
WAV = base64.b64encode(b"RIFF\x64\0\0\0WAVEfmt " + bytes(100)).decode()
PDF = base64.b64encode(b"%PDF-1.4\n" + bytes(100)).decode()


def rescued(*content: Any, **more: Any) -> Envelope:
    return rescue(lift({"content": list(content), **more}))


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def image(data: str) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": "image/png"}


def shown(envelope: Envelope) -> list[Any]:
    return [getattr(block, "text", None) or getattr(block, "data", None) or block.type for block in envelope.blocks]


def test_a_data_uri_in_text_is_shown_where_it_stood() -> None:
    envelope = rescued(text(f"before data:image/png;base64,{RED} after"), text("last"))
    assert shown(envelope) == ["before ", RED, " after", "last"]
    assert [note.kind for note in envelope.notes] == ["rescued"]


def test_markdown_and_html_around_a_data_uri_go_with_it() -> None:
    envelope = rescued(
        text(f"see ![a chart](data:image/png;base64,{RED}) and <img alt='x' src='data:image/png;base64,{BLUE}'/>.")
    )
    assert shown(envelope) == ["see a chart", RED, " and ", BLUE, "."]


def test_the_annotations_of_a_text_stay_with_its_parts() -> None:
    envelope = rescued(text(f"a data:image/png;base64,{RED} b", annotations={"priority": 1}))
    assert [block.wire().get("annotations") for block in envelope.blocks] == [{"priority": 1}, None, {"priority": 1}]


def test_text_that_is_only_base64_becomes_what_it_is() -> None:
    assert [block.type for block in rescued(text(RED), text(WAV), text(PDF)).blocks] == ["image", "audio", "resource"]


def test_media_in_json_text_is_replaced_and_shown_after_it() -> None:
    envelope = rescued(text(json.dumps({"name": "x", "picture": {"mimeType": "image/png", "data": RED}})))
    assert json.loads(shown(envelope)[0])["picture"]["data"].startswith("[image/png, ")
    assert shown(envelope)[1] == RED


def test_media_in_structured_content_is_shown_at_the_end() -> None:
    envelope = rescued(text("words"), structuredContent={"a": [{"b": BLUE}], "c": 1})
    assert shown(envelope) == ["words", BLUE]
    assert envelope.structured_content["a"][0]["b"].startswith("[image/png, ")
    assert envelope.structured_content["c"] == 1


def test_an_image_that_is_shown_already_is_not_shown_twice() -> None:
    envelope = rescued(image(RED), structuredContent={"content": [image(RED)]})
    assert shown(envelope) == [RED]
    assert RED not in json.dumps(envelope.structured_content)
    assert [note.kind for note in envelope.notes] == ["repeated"]


def test_the_same_hidden_image_is_shown_once() -> None:
    assert shown(rescued(structuredContent={"a": RED, "b": RED, "c": f"data:image/png;base64,{RED}"})) == [RED]


@pytest.mark.parametrize(
    "value",
    [
        "a" * 500,
        "deadbeef" * 40,
        base64.b64encode(b"just some text, nothing more " * 20).decode(),
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9" * 5,
        base64.b64encode(b"PK\3\4" + bytes(200)).decode(),
        RED[:60],
    ],
)
def test_what_only_looks_like_base64_is_left_alone(value: str) -> None:
    content = {"content": [text(value)], "structuredContent": {"mimeType": "image/png", "data": value}}
    assert rescue(lift(content)) == lift(content)


def test_a_result_without_hidden_media_is_the_very_same() -> None:
    envelope = lift({"content": [text("x"), image(RED)], "structuredContent": {"a": [1, {"b": "c"}]}})
    assert rescue(envelope) is envelope


def test_ten_megabytes_of_hostile_text_are_read_in_linear_time() -> None:
    hostile = "base64," + "<img src=" * 500_000 + "data:" * 1_000_000 + "![" * 200_000
    assert rescued(text(hostile)).blocks == lift({"content": [text(hostile)]}).blocks


def test_deeply_nested_values_do_not_break_it() -> None:
    nested: Any = RED
    for _ in range(300):
        nested = [nested]
    assert rescued(structuredContent={"deep": nested}).blocks == ()


def test_only_so_many_pieces_are_rescued() -> None:
    pieces = [base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60) + number.to_bytes(4)).decode() for number in range(300)]
    assert len(rescued(structuredContent=pieces).blocks) == 200


@given(st.text(max_size=200), st.text(max_size=200))
def test_words_around_a_data_uri_are_kept(before: str, after: str) -> None:
    envelope = rescued(text(f"{before} data:image/png;base64,{RED} {after}"))
    words = "".join(block.text for block in envelope.blocks if block.type == "text")
    assert "".join((before + after).split()) == "".join(words.split())
    assert [block.data for block in envelope.blocks if block.type == "image"] == [RED]


def test_base64_between_quotes_is_found_in_text_that_is_no_json() -> None:
    printed = f"[ImageContent(type='image', data='{RED}', mimeType='image/png')] and 'a' * 3"
    envelope = rescued(text(printed))
    assert [block.type for block in envelope.blocks] == ["text", "image"]
    assert RED not in shown(envelope)[0]
    assert shown(envelope)[1] == RED


def test_json_with_words_around_it_keeps_its_words() -> None:
    said = f"the tool failed with: {json.dumps([image(RED), image(BLUE)])}"
    envelope = rescued(text(said))
    assert shown(envelope)[1:] == [RED, BLUE]
    assert shown(envelope)[0].startswith('the tool failed with: [{"type": "image", "data": "[image/png, ')


def test_json_within_a_string_of_json_is_looked_into() -> None:
    inner = json.dumps({"plot": {"image/png": RED}, "rows": [1]})
    envelope = rescued(text(json.dumps({"result": inner})))
    assert shown(envelope)[1] == RED
    kept = json.loads(json.loads(shown(envelope)[0])["result"])
    assert kept["rows"] == [1]
    assert kept["plot"]["image/png"].startswith("[image/png, ")


def test_escaped_json_in_words_is_looked_into() -> None:
    escaped = json.dumps(json.dumps({"data": RED}))
    assert shown(rescued(text(f"said: {escaped}")))[1] == RED


def test_a_data_uri_within_a_string_of_json_is_found() -> None:
    envelope = rescued(text(json.dumps({"markdown": f"see ![x](data:image/png;base64,{RED}) here"})))
    assert shown(envelope)[1] == RED


def test_quoted_words_that_look_like_base64_stay_what_they_are() -> None:
    words = "token = '" + "abcd" * 40 + "'"
    assert rescued(text(words)).notes == ()


@pytest.mark.parametrize("label", ["Image", "audio", "attached file"])
def test_base64_in_brackets_behind_a_label_is_found(label: str) -> None:
    envelope = rescued(text(f"before\n[{label}: {RED}]\nafter [{label}: {BLUE}]"))
    words, *pictures = shown(envelope)
    assert pictures == [RED, BLUE]
    assert words.startswith(f"before\n[{label}: [image/png, ")
    assert RED not in words


def test_words_in_brackets_that_look_like_base64_stay_what_they_are() -> None:
    assert rescued(text("[token: " + "abcd" * 40 + "]")).notes == ()

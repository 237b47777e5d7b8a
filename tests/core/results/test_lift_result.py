"""Lifting keeps everything: what it cannot read stays whole, and nothing raises."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.model.blocks import ImageBlock, ResourceBlock, TextBlock, UnknownBlock
from gateway.core.model.envelope import Envelope, envelope_json_schema
from gateway.core.model.media_types import PixelSize
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # 1x1
PASSTHROUGH = Profile(name="passthrough")


def image(**more: Any) -> dict[str, Any]:
    return {"type": "image", "data": PNG, "mimeType": "image/png", **more}


def kinds(result: dict[str, Any]) -> list[str]:
    return [note.kind for note in lift(result).notes]


def test_every_block_kind_is_read_and_order_kept() -> None:
    envelope = lift(
        {
            "content": [
                {"type": "text", "text": "a"},
                image(),
                {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
                {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
                {"type": "resource_link", "uri": "a:b", "name": "n"},
            ]
        }
    )
    assert [block.type for block in envelope.blocks] == ["text", "image", "audio", "resource", "resource_link"]
    assert envelope.notes[0].text.startswith("its type is image/png, not audio/wav")


def test_an_image_is_inspected_not_decoded() -> None:
    block = lift({"content": [image(mimeType="application/octet-stream")]}).blocks[0]
    assert isinstance(block, ImageBlock)
    assert block.found is not None
    assert (block.found.media_type, block.found.pixels) == ("image/png", PixelSize(1, 1))
    assert block.found.data is block.data


def test_the_types_of_embedded_blobs_are_sniffed_too() -> None:
    blob = {"type": "resource", "resource": {"uri": "a:b", "blob": PNG, "mimeType": "text/plain"}}
    block = lift({"content": [blob]}).blocks[0]
    assert isinstance(block, ResourceBlock)
    assert block.found is not None
    assert block.found.media_type == "image/png"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "video", "data": "x"},
        {"type": "image"},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "resource", "resource": "x"},
        {"type": ["text"]},
        {"text": "no type"},
        "a string",
        None,
        17,
        [],
    ],
)
def test_one_bad_block_costs_only_itself(block: Any) -> None:
    envelope = lift({"content": [{"type": "text", "text": "before"}, block, image()]})
    assert isinstance(envelope.blocks[1], UnknownBlock)
    assert envelope.blocks[1].wire() == block
    assert [type(other) for other in (envelope.blocks[0], envelope.blocks[2])] == [TextBlock, ImageBlock]
    assert [note.block for note in envelope.notes] == [1]


def test_a_missing_type_and_broken_base64_cost_a_note() -> None:
    assert kinds({"content": [{"type": "image", "data": PNG}]}) == ["mended"]
    assert kinds({"content": [image(data="no base64!")]}) == ["broken"]
    assert kinds({"content": [image(data=PNG.rstrip("=") + "\n")]}) == ["mended"]


@pytest.mark.parametrize(
    "block",
    [
        image(mimeType="image/png" + "x" * 1_000),
        {"type": "audio", "data": PNG, "mimeType": "\u200b" * 2_000},
        {"type": "resource_link", "uri": "a://b", "name": "b", "mimeType": "x" * 2_000},
        {"type": "resource", "resource": {"uri": "a://b", "text": "b", "mimeType": "x" * 2_000}},
    ],
)
def test_a_media_type_of_any_length_costs_its_block_alone(block: dict[str, Any]) -> None:
    envelope = lift({"content": [block, {"type": "text", "text": "seen"}]})
    assert isinstance(envelope.blocks[0], UnknownBlock)
    assert envelope.blocks[0].wire() == block
    assert isinstance(envelope.blocks[1], TextBlock)
    assert [note.kind for note in envelope.notes] == ["broken"]


@pytest.mark.parametrize("content", ["text", 5, {"type": "text", "text": "x"}])
def test_content_that_is_no_list_is_kept(content: Any) -> None:
    envelope = lift({"content": content})
    assert [block.wire() for block in envelope.blocks] == [content]
    assert envelope.notes[0].kind == "broken"


def test_absent_and_null_structured_content_differ() -> None:
    assert not lift({"content": []}).has_structured_content
    assert lift({"content": [], "structuredContent": None}).has_structured_content


@pytest.mark.parametrize(("flag", "read"), [(True, True), (False, False), (None, False), ("yes", False), (1, False)])
def test_only_true_is_an_error(flag: Any, read: bool) -> None:
    envelope = lift({"content": [], "isError": flag})
    assert envelope.is_error is read
    assert lower(envelope, PASSTHROUGH, decide(envelope, PASSTHROUGH, {})).result["isError"] == flag


def test_the_published_schema_describes_an_envelope() -> None:
    schema = envelope_json_schema()
    assert schema["title"] == "Envelope"
    assert set(schema["properties"]) >= {"blocks", "structured_content", "is_error", "rest", "notes"}
    assert json.dumps(schema)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
KNOWN = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "video"])},
    optional={
        "text": st.text(max_size=30) | JSON,
        "data": st.sampled_from([PNG, "data:image/png;base64," + PNG, "broken!"]) | JSON,
        "mimeType": st.sampled_from(["image/png", "text/plain", "image/jpeg"]) | JSON,
        "resource": st.fixed_dictionaries(
            {"uri": st.text(max_size=9)}, optional={"text": st.text(), "blob": st.text(), "mimeType": JSON}
        )
        | JSON,
        "uri": st.text(max_size=9) | JSON,
        "name": JSON,
        "annotations": JSON,
        "_meta": JSON,
        "found": JSON,
        "new": JSON,
    },
)
RESULTS = st.fixed_dictionaries(
    {"content": st.lists(KNOWN | JSON, max_size=5)},
    optional={"structuredContent": JSON, "isError": st.booleans() | JSON, "_meta": JSON, "resultType": JSON},
)


@given(RESULTS)
def test_lifting_and_lowering_with_passthrough_gives_the_same_json(result: dict[str, Any]) -> None:
    assert lower(lift(result), PASSTHROUGH, decide(lift(result), PASSTHROUGH, {})).result == result


@given(JSON)
def test_lifting_never_raises(value: Any) -> None:
    assert isinstance(lift(value if isinstance(value, dict) else {"content": value}), Envelope)

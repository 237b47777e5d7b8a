"""Counting content by the published formulas: the vendors' own examples, and sizes that no image has."""

from base64 import b64encode
from io import BytesIO

import pytest
from PIL import Image

from gateway.config.builtin_profiles import load_builtin, model_profiles, token_formulas
from gateway.core.model.envelope import Envelope
from gateway.core.model.media_types import PixelSize
from gateway.core.results.lift_result import lift
from gateway.core.tokens import (
    Content,
    Medium,
    TokenCount,
    content_of_blocks,
    content_of_result,
    content_of_tools,
    count_content,
    formulas_for,
    text_tokens,
)
from gateway.core.tokens.formula import FormulaSource, resolve_formulas
from gateway.errors import ProfileError

FORMULAS = token_formulas()


def image(name: str, width: int, height: int) -> TokenCount:
    return count_content(Content(media=[Medium("image", PixelSize(width, height))]), FORMULAS[name])


@pytest.mark.parametrize(
    ("name", "size", "tokens"),
    [
        # platform.claude.com, vision and vision-coordinates
        ("claude", (3840, 2160), 4_784),
        ("claude", (1920, 1080), 2_691),
        ("claude", (224, 224), 64),
        ("claude_standard", (3840, 2160), 1_560),
        ("claude_standard", (1075, 1520), 1_551),
        # developers.openai.com, images-vision
        ("openai_4_1_mini", (1024, 1024), 1_659),  # 1,024 patches
        ("openai_4_1_mini", (1800, 2400), 2_353),  # 1,452 patches
        ("openai_tiles", (1024, 1024), 765),
        ("openai_tiles", (2048, 4096), 1_105),
        ("openai_small", (2048, 768), 1_844),  # as measured by a user
        # ai.google.dev, image-understanding and media-resolution
        ("gemini_2", (960, 540), 6 * 258),
        ("gemini_2", (384, 384), 258),
        # firebase.google.com, input-file-requirements: crops of 256 to 768 px of at most 3072x3072
        ("gemini_2", (385, 100), 2 * 258),
        ("gemini_2", (2_000, 1), 8 * 258),
        ("gemini_2", (2_304, 1_536), 6 * 258),
        ("gemini_2", (6_144, 6_144), 16 * 258),
        ("gemini", (12_000, 9_000), 1_120),
        ("nova_2", (900, 900), 230),
        # QwenLM smart_resize, mistral-common ImageEncoder
        ("qwen", (1024, 1024), 1_026),
        ("qwen", (8, 8), 6),
        ("qwen", (10_000, 10_000), 16_386),
        ("pixtral", (1024, 1024), 65 * 64),
        ("mistral", (1540, 1540), 56 * 55),
        ("grok", (448, 448), 512),
        ("grok", (10_000, 10_000), 7 * 256),
    ],
)
def test_the_vendors_own_examples(name: str, size: tuple[int, int], tokens: int) -> None:
    assert image(name, *size) == TokenCount(images=tokens)


@pytest.mark.parametrize("name", sorted(FORMULAS))
@pytest.mark.parametrize("size", [(1, 1), (1, 60_000), (60_000, 1), (10_000, 10_000), (3, 65_535)])
def test_extreme_sizes_cost_a_bounded_number_of_tokens(name: str, size: tuple[int, int]) -> None:
    count = image(name, *size)
    most = FORMULAS[name].image.max_patches
    if FORMULAS[name].image.by == "unknown":
        assert count == TokenCount(unknown=1)
        return
    assert count.is_whole
    assert 0 < count.images < 200_000
    if most is not None:
        assert count.images <= most * FORMULAS[name].image.multiplier + FORMULAS[name].image.base + 1


_CLAIMED = [(0, 0), (0, 10), (-1, 5), (2**40, 1), (1, 100_000), (20_000, 20_000), (2**31 - 1, 2**31 - 1)]


@pytest.mark.parametrize("pixels", [None, *(PixelSize(*size) for size in _CLAIMED)])
def test_an_image_without_a_size_is_unknown_and_not_free(pixels: PixelSize | None) -> None:
    content = Content(media=[Medium("image", pixels)])
    assert count_content(content, FORMULAS["claude"]) == TokenCount(unknown=1)
    assert count_content(content, FORMULAS["gemini"]) == TokenCount(images=1_120)


def test_sound_video_and_pages_count_if_their_length_is_known() -> None:
    media = [Medium("audio", seconds=60), Medium("video", seconds=10), Medium("document", pages=10_000)]
    assert count_content(Content(media=media), FORMULAS["gemini_2"]).others == 1_920 + 2_630 + 2_580_000
    unmeasured = [Medium("audio"), Medium("video"), Medium("document"), Medium("other"), Medium("audio", seconds=-1)]
    assert count_content(Content(media=unmeasured), FORMULAS["gemini_2"]).unknown == 5
    assert count_content(Content(media=media), FORMULAS["claude"]) == TokenCount(others=77_840_000, unknown=2)
    assert count_content(Content(["four words of text"], media), None) == TokenCount(
        text=text_tokens("four words of text"), unknown=3
    )


def png(width: int, height: int) -> str:
    written = BytesIO()
    Image.new("1", (width, height)).save(written, "PNG")
    return b64encode(written.getvalue()).decode()


def of(result: object) -> Envelope:
    return lift(result if isinstance(result, dict) else {"content": result})


def test_a_result_is_read_as_its_blocks_say() -> None:
    picture = {"type": "image", "data": png(560, 280), "mimeType": "image/png"}
    broken = {"type": "image", "data": "no image at all!", "mimeType": "image/png"}
    embedded = {"type": "resource", "resource": {"uri": "a:b", "text": "hello there"}}
    blob = {"type": "resource", "resource": {"uri": "a:b", "blob": png(28, 28)}}
    count = count_content(
        content_of_blocks(of([picture, broken, embedded, blob, {"type": "new"}, 7]).blocks), FORMULAS["claude"]
    )
    assert (count.images, count.unknown) == (20 * 10 + 1, 1)
    assert count.text == text_tokens("hello there") + text_tokens('{"type":"new"}') + text_tokens("7")


def test_a_result_on_the_wire_is_counted_as_its_blocks_are() -> None:
    result = {
        "content": [
            {"type": "text", "text": "some words"},
            {"type": "image", "data": png(560, 280), "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a:b", "text": "hello there"}},
            {"type": "resource", "resource": {"uri": "a:b", "blob": png(28, 28)}},
            {"type": "resource_link", "uri": "a:b", "name": "b"},
        ]
    }
    blocks = count_content(content_of_blocks(lift(result).blocks), FORMULAS["claude"])
    assert count_content(content_of_result(result), FORMULAS["claude"]) == blocks
    assert (blocks.images, blocks.unknown) == (201, 1)


@pytest.mark.parametrize(
    "content",
    [None, 7, {}, [7, None], [{"type": []}], [{"type": "image"}], [{"type": "image", "data": "\ud800%"}]],
)
def test_a_malformed_result_is_counted_without_a_failure(content: object) -> None:
    assert count_content(content_of_result({"content": content}), FORMULAS["claude"]).images == 0


@pytest.mark.parametrize(
    ("host", "reads"),
    [("beside", "both"), ("dumped", "both"), ("ignored", "text"), ("unknown", "text"), ("replaces-text", "value")],
)
def test_structured_content_counts_as_the_host_shows_it(host: str, reads: str) -> None:
    result = {"content": [{"type": "text", "text": "words " * 20}], "structuredContent": {"a": "value " * 50}}
    text, value = text_tokens("words " * 20), text_tokens('{"a":"%s"}' % ("value " * 50))
    expected = {"both": text + value, "text": text, "value": value}[reads]
    assert count_content(content_of_result(result, host), None).total == expected
    alone = {"content": [], "structuredContent": {"a": "value " * 50}}
    assert count_content(content_of_result(alone, host), None).total == value


def test_structured_content_counts_where_a_host_shows_it() -> None:
    envelope = of({"content": [], "structuredContent": {"a": 1}})
    assert count_content(content_of_blocks(envelope.blocks), None).total == 0
    assert count_content(content_of_blocks(envelope.blocks, envelope.structured_content), None).total > 0


def test_a_tool_costs_what_a_model_reads_of_it() -> None:
    tool = {"name": "search", "description": "Search the web.", "inputSchema": {"type": "object"}}
    beside = {**tool, "outputSchema": {"type": "object"}, "_meta": {"a": "b" * 1_000}, "annotations": {"title": "S"}}
    plain = count_content(content_of_tools([tool]), None).total
    assert plain > 10
    assert count_content(content_of_tools([beside]), None).total == plain
    assert count_content(content_of_tools([{}, {"name": 7}]), None).unknown == 0


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-opus-4-7", "claude"),
        ("claude-sonnet-5", "claude"),
        ("claude-opus-4-5-20251101", "claude_standard"),
        ("anthropic/claude-sonnet-4-20250514", "claude_standard"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude_standard"),
        ("gpt-4o-mini", "openai_tiles_4o_mini"),
        ("openai/gpt-4o-2024-11-20", "openai_tiles"),
        ("gpt-4.1-nano", "openai_4_1_nano"),
        ("gpt-5", "openai_tiles_5"),
        ("gpt-5-mini-2025-08-07", "openai_small"),
        ("gpt-5.1-codex", "openai_small"),
        ("gpt-5.4", "openai"),
        ("gpt-5.4-nano", "openai_small"),
        ("gpt-5.5", "openai_original"),
        ("gpt-5.6", "openai_unscaled"),
        ("gemini-2.5-flash", "gemini_2"),
        ("gemini-3.1-pro-preview", "gemini"),
        ("amazon.nova-2-lite-v1:0", "nova_2"),
        ("us.amazon.nova-lite-v1:0", "nova"),
        ("Qwen2.5-VL-7B", "qwen_2_5"),
        ("qwen3-vl-plus", "qwen"),
        ("pixtral-12b", "pixtral"),
    ],
)
def test_the_name_of_a_model_chooses_its_formula(model: str, name: str) -> None:
    assert [formula.name for formula in formulas_for(FORMULAS, ("gemini",), model)] == [name]


def test_without_a_known_model_the_profile_says() -> None:
    for model in (None, "", "llama-4-scout", "x" * 10_000):
        assert [formula.name for formula in formulas_for(FORMULAS, ("openai", "gone", "claude"), model)] == [
            "openai",
            "claude",
        ]


def test_every_formula_that_a_profile_names_exists() -> None:
    hosts = [fact.sets for source in load_builtin().values() for fact in source.fact]
    named = {name for sets in hosts for name in sets.get("tokens", {}).get("formulas", ())}
    named |= {name for profile in model_profiles().values() for name in profile.tokens.formulas}
    assert named
    assert named <= set(FORMULAS)


def test_every_value_of_a_formula_has_evidence() -> None:
    for formula in FORMULAS.values():
        stated = formula.model_dump(exclude_defaults=True, include={"image", "audio", "video", "document"})
        paths = {f"{table}.{key}" for table, values in stated.items() for key in values}
        assert paths <= set(formula.evidence), formula.name
        assert all(known.source and known.checked for known in formula.evidence.values())


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ({"image.side": 0}, "greater than 0"),
        ({"image.multiplier": -1}, "greater than 0"),
        ({"image.by": "guess"}, "patches"),
        ({"image.sides": 28}, "image.side"),
    ],
)
def test_a_wrong_value_is_refused(sets: dict[str, object], said: str) -> None:
    with pytest.raises(ProfileError) as raised:
        resolve_formulas({"x": FormulaSource(sets=sets)})
    assert said in f"{raised.value.message} {raised.value.remedy}"

"""The budget of a result in tokens: what is cut, scaled or named, as plain values."""

from base64 import b64encode
from typing import Any

import pytest

from gateway.config.builtin_profiles import builtin_profiles, token_formulas
from gateway.core.model.effects import Effect, Failed, FitImage, Fitted, Keep, Kept, Outcome
from gateway.core.model.media_types import PixelSize, inspect_base64
from gateway.core.results.decisions import Decisions, TokenBudget, decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower
from gateway.core.tokens import content_of_result, count_content

FORMULAS = token_formulas()
HOST = builtin_profiles()["claude-code"]


def png(width: int, height: int, more: int = 0) -> str:
    start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b64encode(start + bytes(more) + b"\0\0\0\0IEND\xaeB`\x82").decode()


def image(width: int, height: int, *, bytes_more: int = 0) -> dict[str, str]:
    return {"type": "image", "data": png(width, height, bytes_more), "mimeType": "image/png"}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def performed(effect: Effect, *, fails: bool) -> Outcome:
    match effect:
        case FitImage() if fails:
            return Failed("no worker is left")
        case FitImage():
            size = inspect_base64(str(effect.data)).size
            assert size is not None
            scale = min(1.0, (effect.target.max_edge or 10**9) / max(size))
            fitted = PixelSize(max(1, round(size.width * scale)), max(1, round(size.height * scale)))
            return Fitted(png(*fitted), "image/png", fitted, size)
        case Keep():
            return Kept("img_7h3k2m9q4w8x")
        case _:
            raise AssertionError(effect)


def shaped(
    content: list[Any], most: int, *formulas: str, profile: str = "claude-code", fails: bool = False
) -> tuple[dict[str, Any], Decisions]:
    host = builtin_profiles()[profile]
    budget = TokenBudget(most, [FORMULAS[name] for name in formulas or ("claude",)])
    envelope, outcomes = lift({"content": content}), dict[str, Outcome]()
    for _ in range(8):
        decisions = decide(envelope, host, outcomes, (), budget)
        if not decisions.wanted:
            return lower(envelope, host, decisions).result, decisions
        outcomes |= {key: performed(effect, fails=fails) for key, effect in decisions.wanted.items()}
    raise AssertionError("it never settles")


def cost(result: dict[str, Any], formula: str = "claude") -> int:
    return count_content(content_of_result(result), FORMULAS[formula]).total


def sizes(result: dict[str, Any]) -> list[PixelSize | None]:
    return [inspect_base64(block["data"]).size for block in result["content"] if block["type"] == "image"]


def test_what_is_within_the_budget_is_not_touched() -> None:
    content = [text("some words"), image(560, 280)]
    result, decisions = shaped(content, 300)
    assert (result["content"], decisions.notes) == (content, ())


def test_long_text_is_cut_with_a_handle_to_the_rest() -> None:
    result, decisions = shaped([text("one line of many words\n" * 2_000)], 2_000)
    assert 1_500 < cost(result) <= 2_000
    assert "img_7h3k2m9q4w8x" in result["content"][0]["text"]
    said = [note.text for note in decisions.notes]
    assert said[0].startswith("a result of about ")
    assert said[0].endswith(" tokens to its budget of 2,000")


def test_an_image_is_scaled_to_what_remains() -> None:
    result, decisions = shaped([text("a few words"), image(1_900, 1_000)], 1_000)
    assert 700 < cost(result) <= 1_000
    (size,) = sizes(result)
    assert size is not None
    assert size.width / size.height == pytest.approx(1.9, rel=0.01)
    assert any("image 1900x1000 to " in note.text for note in decisions.notes)


def test_several_images_share_the_budget_and_small_ones_stay() -> None:
    result, _ = shaped([image(1_900, 1_000), image(280, 280), image(1_900, 1_000)], 1_500)
    assert cost(result) <= 1_500
    first, second, third = sizes(result)
    assert (second, first == third) == (PixelSize(280, 280), True)


def test_an_image_that_would_be_too_small_is_named_with_its_handle_and_the_numbers() -> None:
    result, _ = shaped([image(1_000, 1_000)], 100)
    (block,) = result["content"]
    assert "its 1,296 tokens are more than the 100 of this result have room for" in block["text"]
    assert "img_7h3k2m9q4w8x" in block["text"]


def test_an_image_whose_cost_has_nothing_to_do_with_its_size_is_named() -> None:
    result, _ = shaped([image(800, 600)], 1_000, "gemini")
    assert [block["type"] for block in result["content"]] == ["text"]
    assert "its 1,120 tokens" in result["content"][0]["text"]


def test_with_several_formulas_the_dearest_counts() -> None:
    content = [image(640, 480)]
    assert sizes(shaped(content, 500, "claude")[0]) == [PixelSize(640, 480)]
    assert sizes(shaped(content, 500, "claude", "gemini")[0]) == []


def test_text_and_images_both_get_their_part() -> None:
    result, _ = shaped([text("one line of many words\n" * 2_000), image(1_900, 1_000)], 2_000)
    assert cost(result) <= 2_000
    assert len(sizes(result)) == 1
    assert len(result["content"][0]["text"]) > 500


def test_a_host_that_shows_everything_keeps_to_the_budget_too() -> None:
    result, _ = shaped([image(1_900, 1_000)], 1_000, profile="passthrough")
    assert cost(result) <= 1_000
    assert len(sizes(result)) == 1


def test_an_image_that_cannot_be_scaled_is_named() -> None:
    result, decisions = shaped([image(1_900, 1_000)], 1_000, fails=True)
    assert sizes(result) == []
    assert any(note.kind == "failed" for note in decisions.notes)
    assert 'open it with gateway_view, handle "img_7h3k2m9q4w8x"' in result["content"][0]["text"]  # it is intact


def test_media_of_unknown_cost_are_left_as_they_are() -> None:
    sound = {"type": "audio", "data": b64encode(b"RIFF\0\0\0\0WAVEfmt ").decode(), "mimeType": "audio/wav"}
    result, decisions = shaped([sound, image(0, 0)], 1, profile="passthrough")
    assert [block["type"] for block in result["content"]] == ["audio", "image"]
    assert decisions.notes == ()


@pytest.mark.parametrize("most", [1, 7, 100, 10**9])
@pytest.mark.parametrize("size", [(1, 1), (1, 60_000), (60_000, 1), (65_535, 65_535)])
def test_extreme_sizes_and_budgets_settle(most: int, size: tuple[int, int]) -> None:
    result, _ = shaped([text("word " * 1_000), image(*size)], most)
    assert result["content"]


@pytest.mark.parametrize("dense", ["\N{GRINNING FACE}" * 3_000, "8273 4417, " * 1_000])
def test_text_whose_head_is_denser_than_its_rest_is_cut_to_the_budget_too(dense: str) -> None:
    result, _ = shaped([text(dense + "lorem ipsum dolor " * 2_000)], 2_000)
    assert 1_000 < cost(result) <= 2_000


def test_an_image_keeps_to_the_characters_that_it_was_fitted_to() -> None:
    host = HOST.model_copy(update={"limits": HOST.limits.model_copy(update={"result_chars": 100_000})})
    envelope = lift({"content": [image(1_900, 1_000, bytes_more=300_000)]})
    budget, outcomes = TokenBudget(1_000, [FORMULAS["claude"]]), dict[str, Outcome]()
    asked: list[FitImage] = []
    while wanted := (decisions := decide(envelope, host, outcomes, (), budget)).wanted:
        asked += [effect for effect in wanted.values() if isinstance(effect, FitImage)]
        outcomes |= {key: performed(effect, fails=False) for key, effect in wanted.items()}
    assert [effect.key.partition(":")[0] for effect in asked] == ["refit", "tokens"]
    first, second = (effect.target.max_bytes for effect in asked)
    assert first is not None
    assert second is not None
    assert second <= first
    assert not decisions.wanted


def test_many_short_texts_are_cut_as_one_and_an_image_after_them_keeps_its_place() -> None:
    content = [text("hello world, this is a text.")] * 3_000 + [image(1_900, 1_000)]
    budget, envelope = TokenBudget(2_000, [FORMULAS["claude"]]), lift({"content": content})
    assert len([key for key in decide(envelope, HOST, {}, (), budget).wanted if key.startswith("text:")]) == 1
    result, _ = shaped(content, 2_000)
    assert 1_500 < cost(result) <= 2_000
    assert [block["type"] for block in result["content"]] == ["text", "text", "image"]
    assert result["content"][0]["text"].count("left out") == 1
    assert result["content"][1]["text"].startswith("[image ")


def test_a_text_is_never_replaced_by_a_line_that_costs_more() -> None:
    content = [text("word " * 20), text("\N{GRINNING FACE}" * 20), text("x" * 60)]
    assert shaped(content, 100)[0]["content"] == content
    short = [text("\N{GRINNING FACE}" * 100)]
    assert cost(shaped(short, 100)[0]) < cost({"content": short})


def test_of_images_of_a_fixed_cost_the_first_are_shown_while_there_is_room() -> None:
    content = [image(800, 600), image(640, 480), image(320, 240)]
    result, _ = shaped(content, 2_000, "gemini")
    assert sizes(result) == [PixelSize(800, 600)]
    assert cost(result, "gemini") <= 2_000
    assert [block["type"] for block in result["content"]].count("text") == 2
    assert len(sizes(shaped(content, 2_600, "gemini")[0])) == 2


def test_many_images_that_cannot_all_be_scaled_are_shown_as_far_as_there_is_room() -> None:
    result, _ = shaped([image(199, 199)] * 10, 620)
    shown = sizes(result)
    assert 0 < len(shown) < 10
    assert set(shown) == {PixelSize(199, 199)}

"""One number for each picture of a turn, whoever counted it before: a model must not pass on the wrong one."""

import json
import re
from typing import Any

import pytest

from gateway.config.builtin_profiles import model_profiles
from gateway.content.shaping.turns import lower_turn_now
from gateway.core import wording
from tests.core.model_apis import cases

MADE = vars(cases)
PNG, BLUE, WAV, PDF = MADE["PNG"], MADE["BLUE"], MADE["WAV"], MADE["PDF"]
text, image = MADE["text"], MADE["image"]
FIRST, SECOND, THIRD = "img_7h3k2m9q4w8x", "img_000000000002", "img_000000000003"


def shown(number: int, handle: str, *, kind: str = "image") -> dict[str, Any]:
    """What the gateway writes before media that a tool could take."""
    return text(wording.marker(f"{kind} {number}", "image/png, 40x30", handle))


def turn(*results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"id": f"call{number:05}", "name": f"tool_{number}", "result": {"content": content}}
        for number, content in enumerate(results)
    ]


@pytest.mark.parametrize("target", sorted(model_profiles()))
def test_every_handle_stands_beside_the_number_of_its_own_picture(target: str) -> None:
    calls = turn(
        [shown(1, FIRST), image(PNG), text("and"), shown(2, SECOND), image(BLUE)], [shown(1, THIRD), image(PNG)]
    )
    written = json.dumps(lower_turn_now(calls, target).messages)
    numbers = re.findall(r"\[image (\d)[^\[\]]*?(img_[0-9a-z]{12})", written)
    assert numbers == [("1", FIRST), ("2", SECOND), ("3", THIRD)]
    for handle in (FIRST, SECOND, THIRD):
        assert written.count(handle) == 1
    # Nothing else goes by one of these numbers and means another picture.
    for number, name in (("1", "tool_0"), ("2", "tool_0"), ("3", "tool_1")):
        for whose in re.findall(rf"\[image {number}, from the result of (\w+)", written):
            assert whose == name


def test_the_words_before_a_picture_that_follows_name_number_place_and_handle() -> None:
    messages = lower_turn_now(turn([text("a"), shown(1, FIRST), image()]), "openai_chat").messages
    assert messages[0]["content"] == (
        f"a\n[image 1: image/png, 40x30, after the tool results; its handle for tools is {FIRST}]"
    )


def test_media_that_an_api_does_not_take_is_a_line_with_its_handle() -> None:
    sound = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    messages = lower_turn_now(turn([shown(1, "aud_000000000001", kind="audio"), sound]), "anthropic_messages").messages
    assert json.dumps(messages).count("aud_000000000001") == 1
    assert "; handle aud_000000000001]" in json.dumps(messages)


@pytest.mark.parametrize(
    "words",
    [
        "[image 1: image/png; its handle for tools is img_7h3k2m9q4w8x] and more",
        "see [image 1: image/png; its handle for tools is img_7h3k2m9q4w8x]",
        "[image 1: image/png]",
        "[picture 1: image/png; its handle for tools is img_7h3k2m9q4w8x]",
        "[audio 1: audio/wav; its handle for tools is aud_7h3k2m9q4w8x]",
        "[image 1: a]b; its handle for tools is img_7h3k2m9q4w8x]",
    ],
)
def test_a_tool_s_own_words_before_a_picture_stay_as_they_are(words: str) -> None:
    assert words in str(lower_turn_now(turn([text(words), image()]), "anthropic_messages").messages)


def test_a_caption_without_its_picture_stays() -> None:
    calls = turn([shown(1, FIRST)], [shown(1, SECOND), text("b")])
    written = str(lower_turn_now(calls, "openai_chat").messages)
    assert FIRST in written
    assert SECOND in written


@pytest.mark.parametrize("known", ["", "image/png", "image/png, 40x30, shown at 10x10, multiply coordinates by 4.00"])
@pytest.mark.parametrize("url", [None, "https://gateway.example/content/x?y=z"])
def test_what_is_written_is_read(known: str, url: str | None) -> None:
    expected = wording.Captioned("image", known, FIRST)
    assert wording.captioned(wording.marker("image 12", known, FIRST, url)) == expected
    assert wording.captioned(wording.caption("image 12", known, None, None, FIRST, url)) == expected

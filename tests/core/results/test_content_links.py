"""Links to kept content in the lines that a host's model reads."""

import base64

import pytest

from gateway.core.model.effects import Failed, Kept, Outcome
from gateway.core.profiles.profile import (
    AudioRules,
    ContentUrlRules,
    ImageRules,
    LimitRules,
    Profile,
    TextRules,
    ToolRules,
)
from gateway.core.results.decisions import decide
from gateway.core.results.lift_result import lift
from gateway.core.results.lower_mcp import lower

PNG = base64.b64encode(
    b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR\0\0\0\2\0\0\0\3\10\2\0\0\0" + b"\0\0\0\0IEND\xaeB`\x82"
).decode()
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt " + b"\0" * 20).decode()
URL = "https://gateway.example.com/content/img_7h3k2m9q4w8x?expires=1&signature=abc"
IMAGE = {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
TEXT = {"content": [{"type": "text", "text": "many words " * 1_000}]}


def profile(show, **rules) -> Profile:
    rules = {"image": ImageRules(show="line"), "tools": ToolRules(helpers=True), **rules}
    return Profile(name="test", content_url=ContentUrlRules(show=show), **rules)


def lowered(result, chosen: Profile, outcome: Outcome):
    envelope, outcomes = lift(result), {}
    while wanted := tuple(decide(envelope, chosen, outcomes).wanted.values()):
        outcomes |= {effect.key: outcome for effect in wanted}
    return lower(envelope, chosen, decide(envelope, chosen, outcomes))


def line(result, chosen: Profile, outcome: Outcome) -> str:
    (block,) = lowered(result, chosen, outcome).result["content"]
    return block["text"]


@pytest.mark.parametrize(
    ("show", "said"),
    [
        ("never", "; handle img_1]"),
        ("beside", f"; handle img_1; a link that opens it for a while: {URL}]"),
        ("instead", f"; a link that opens it for a while: {URL}]"),
    ],
)
def test_a_line_names_the_handle_the_link_or_both_as_the_profile_says(show, said):
    text = line(IMAGE, profile(show), Kept("img_1", URL))
    size = len(base64.b64decode(PNG))
    why = "this host does not show images to its model"
    assert text == f"[image 1: image/png, 2x3, {size} bytes ({why}){said}"


@pytest.mark.parametrize("show", ["never", "beside", "instead"])
def test_without_an_http_side_the_handle_is_named_whatever_the_profile_says(show):
    assert line(IMAGE, profile(show), Kept("img_1")).endswith("; handle img_1]")


@pytest.mark.parametrize(
    ("show", "named"), [("never", (True, False)), ("beside", (True, True)), ("instead", (False, True))]
)
def test_a_text_that_was_cut_links_to_all_of_it(show, named):
    text = line(TEXT, profile(show, text=TextRules(max_chars=2_000)), Kept("txt_1", URL))
    assert ("txt_1" in text, f"a link that opens all of it for a while: {URL}" in text) == named


def test_links_count_towards_the_size_of_the_result():
    url = URL + "x" * 3_000
    blocks = [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}, TEXT["content"][0]]
    chosen = profile("beside", audio=AudioRules(show="line"), limits=LimitRules(result_chars=8_000))
    whole = sum(
        len(block["text"]) for block in lowered({"content": blocks}, chosen, Kept("aud_1", url)).result["content"]
    )
    assert 6_000 < whole <= 8_000


def test_content_that_could_not_be_kept_is_a_line_without_a_handle_and_a_note():
    """A store that is down or full in the middle of a result: the result arrives, shaped without it."""
    shaped = lowered(IMAGE, profile("beside"), Failed("the store cannot be reached"))
    (block,) = shaped.result["content"]
    why = "this host does not show images to its model; it could not be kept: the store cannot be reached"
    assert block["text"].endswith(f"({why})]")
    notes = [note.text for note in shaped.notes if note.kind == "failed"]
    assert notes == ["content that is not kept: the store cannot be reached"]

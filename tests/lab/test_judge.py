"""The word that a case gets, by the requests that reached the model API."""

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

import pytest
from PIL import Image

from gateway.hosts.simulators.originals import original_images
from gateway.testing.model_apis.server import Recorded
from lab.cases import audio, cases, content, document, horn, image, other, picture, resource, text
from lab.judge import Finding, find

CHART = picture("PNG", seed=1)
HANDLE = "img_pj7mjs2v2zrc"
USER = {"role": "user", "content": "look"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "chart", "arguments": "{}"}}],
}


def shown(data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def after(told: Any, *more: dict[str, Any]) -> list[Recorded]:
    """A first request, and the one with the result."""
    messages = [USER, CALLED, {"role": "tool", "tool_call_id": "c0", "content": told}, *more]
    bodies = [{"model": "gpt-5", "messages": one} for one in ([USER], messages)]
    return [Recorded("POST", "/v1/chat/completions", {}, json.dumps(body).encode()) for body in bodies]


def word(original: Mapping[str, Any], requests: list[Recorded], ended: str | None = None) -> Finding:
    return find("openai_chat", "gpt-5", original, requests, ended)


def test_what_the_model_gets_as_it_is_is_seen():
    found = word(
        content(text("A chart."), image(CHART)), after("A chart.", {"role": "user", "content": [shown(CHART)]})
    )
    assert found == Finding("seen", 1, 1)


def test_a_line_with_a_handle_names_a_picture_and_one_without_does_not():
    original = content(text("A chart."), image(CHART))
    named = f"A chart.\n[image 1: image/png, 96x64, 2 KB (not shown); handle {HANDLE}]"
    assert word(original, after(named)) == Finding("named", 0, 1)
    assert word(original, after("A chart.\n[image 1: 96x64]")).word == "lost"
    assert word(original, after("A chart.")).word == "lost"


def test_of_several_pictures_those_that_are_shown_are_counted():
    original = content(image(CHART), image(other()))
    told = f"[image 2: image/png, 96x64, 2 KB (not shown); handle {HANDLE}]"
    assert word(original, after(told, {"role": "user", "content": [shown(CHART)]})) == Finding("named", 1, 2)


def test_a_picture_is_known_by_its_looks():
    wrong = {"role": "user", "content": [shown(other())]}
    assert word(content(image(CHART)), after("", wrong)).word == "lost"
    buffer = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(CHART))).resize((48, 32)).save(buffer, "PNG")
    smaller = {"role": "user", "content": [shown(base64.b64encode(buffer.getvalue()).decode())]}
    assert word(content(image(CHART)), after("", smaller)).word == "seen"


def test_base64_as_text_is_lost():
    assert "base64" in word(content(image(CHART)), after(json.dumps(image(CHART)))).why


def test_a_request_that_the_api_does_not_take_is_refused_whatever_follows():
    found = word(content(image(CHART)), after([shown(CHART)]) + after("sorry"))
    assert found.word == "refused"
    assert "role 'user'" in found.why


@pytest.mark.parametrize("requests", [[], after("")[:1]])
def test_a_program_that_sends_no_result_failed_and_says_why(requests):
    assert word(content(text("A chart.")), requests, "ValueError:\n no") == Finding("failed", 0, 0, "ValueError: no")


def test_a_document_and_a_sound_are_seen_as_such_or_named():
    page = content(resource(uri="x://a.pdf", mimeType="application/pdf", blob=document("Soundings")))
    part = {"type": "file", "file": {"file_data": f"data:application/pdf;base64,{document('Soundings')}"}}
    assert word(page, after("", {"role": "user", "content": [part]})).word == "seen"
    assert word(page, after("Soundings\n[document 1: application/pdf; handle doc_pj7mjs2v2zrc]")).word == "named"
    assert word(content(audio(horn())), after("")).word == "lost"


def test_a_long_text_is_seen_only_whole():
    long = cases()["long"].whole
    whole = long["content"][0]["text"]
    assert word(long, after(whole)).word == "seen"
    assert word(long, after(json.dumps(long["content"]))).word == "seen"
    assert word(long, after(whole[:20_000])) == Finding("lost", 0, 0, "a text is cut short")
    assert word(long, after(f"{whole[:9_000]} [9,000 characters] {whole[-9_000:]}")).word == "lost"
    rest = "[the text goes on: 12,000 characters more; handle txt_pj7mjs2v2zrc]"
    assert word(long, after(whole[:18_000] + rest)).word == "named"


def test_less_is_worse():
    seen, named, lost = Finding("seen", 26, 26), Finding("named", 8, 26), Finding("lost", 0, 26)
    assert named.is_worse_than(seen)
    assert lost.is_worse_than(named)
    assert not seen.is_worse_than(seen)
    assert Finding("refused", 0, 1).is_worse_than(lost)


def test_no_two_pictures_of_a_case_are_alike():
    for case in cases().values():
        pictures = [one.picture for one in original_images(case.whole) if one.picture]
        assert all(one.difference(two) > 20 for at, one in enumerate(pictures) for two in pictures[:at]), case.title

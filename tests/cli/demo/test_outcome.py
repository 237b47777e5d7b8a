"""The words of a cell: what became of a result at one host."""

import base64
import io
import re
from collections import Counter
from typing import Any

import pytest
from PIL import Image
from rich.console import Console

from gateway.cli.demo.cases import CASES
from gateway.cli.demo.outcome import Cell, Outcome
from gateway.cli.demo.table import count_lossless, print_table
from gateway.hosts.simulators.hosts import SIMULATORS
from gateway.hosts.simulators.side import Side, side, summary


def _png() -> str:
    out = io.BytesIO()
    Image.linear_gradient("L").convert("RGB").save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


IMAGE = {"type": "image", "data": _png(), "mimeType": "image/png"}
SOUND = {"type": "audio", "data": base64.b64encode(b"RIFF....WAVE" * 40).decode(), "mimeType": "audio/wav"}
PDF = {
    "type": "resource",
    "resource": {"uri": "doc:1", "mimeType": "application/pdf", "blob": base64.b64encode(b"%PDF-1.7" * 40).decode()},
}
LONG = {"type": "text", "text": "tide " * 60_000}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _side(host: str, original: list[Any], *, result: list[Any] | None = None, **more: Any) -> Side:
    whole = {"content": original, **more}
    return side(whole, whole if result is None else {"content": result}, None, SIMULATORS[host])


@pytest.mark.parametrize(
    ("host", "original", "result", "words", "tone"),
    [
        ("codex", [IMAGE], None, "1 image", "good"),
        ("claude-desktop", [IMAGE], None, "1 image later", "good"),
        ("codex", [_text("hello")], None, "text", "good"),
        ("codex", [IMAGE], [_text("gone")], "image lost", "bad"),
        ("cline", [IMAGE], [_text("[image 1: image/png, 256x256; handle img_1]")], "named", "kept"),
        ("codex", [IMAGE], [IMAGE, _text("[image 1: 256x256, of 900x900; handle img_1]")], "1 image", "good"),
        ("cline", [IMAGE, _text("x")], [_text("x [image 1: image/png; handle img_1]")], "named", "kept"),
        ("codex", [IMAGE, SOUND], [IMAGE, _text("[audio 1: audio/wav; handle aud_1]")], "1 image + named", "kept"),
        ("codex", [SOUND], [_text("[audio 1: audio/wav; handle aud_1]")], "named", "kept"),
        ("codex", [_text("a tone"), SOUND], None, "sound lost", "poor"),
        ("claude-code", [SOUND], None, "a file", "poor"),
        ("inspector", [SOUND], None, "sound", "good"),
        ("inspector", [PDF], None, "document", "good"),
        ("claude-code", [PDF], None, "document lost", "poor"),
        ("codex", [LONG], None, "cut to 48k", "poor"),
        ("unknown", [LONG], None, "300k of text", "poor"),
        ("inspector", [LONG], None, "text", "good"),
        ("codex", [LONG], [_text("tide " * 12 + "[… cut; handle txt_1 …]")], "text, rest kept", "kept"),
        ("claude-desktop", [PDF], None, "lost", "bad"),
    ],
)
def test_a_cell_says_in_a_few_words_what_the_model_gets(
    host: str, original: list[Any], result: list[Any] | None, words: str, tone: str
) -> None:
    assert summary(_side(host, original, result=result)) == (words, tone)


def test_base64_as_text_is_counted() -> None:
    words, tone = summary(_side("unknown", [SOUND]))
    assert (words, tone) == (f"base64! {len(SOUND['data'])}", "bad")


def test_what_is_read_twice_is_not_called_lost() -> None:
    value = {"harbour": "the harbour of Falmouth"}
    twin, other = _text('{"harbour":"the harbour of Falmouth"}'), _text("Depths of the harbour")
    assert summary(_side("claude-desktop", [twin], structuredContent=value)) == ("twice", "poor")
    assert summary(_side("claude-desktop", [twin], result=[twin], structuredContent=value)) == ("text", "good")
    assert summary(_side("claude-desktop", [twin], result=[other], structuredContent=value)) == ("lost", "bad")


def test_a_host_that_fails_and_a_call_that_fails_are_told_apart() -> None:
    assert summary(_side("claude-desktop", [_text("x" * 1_100_000)])) == ("host error", "bad")
    assert summary(Side(None, None, "no tool charts__draw_chart is offered")) == ("call failed", "bad")


def test_an_error_that_the_model_is_not_told_of_is_bad() -> None:
    assert summary(_side("codex", [_text("4 values are bad")], isError=True)) == ("error untold", "bad")


def _outcome(*through: Side) -> Outcome:
    host = SIMULATORS["codex"]
    good = _side("codex", [IMAGE])
    cells = tuple(Cell(host, case, good, one) for case, one in zip(CASES, through, strict=False))
    return Outcome((host,), CASES[: len(through)], cells, 1.0)


def test_the_outcome_is_good_only_if_every_cell_is_good_through_the_gateway() -> None:
    good, bad = _side("codex", [IMAGE]), _side("codex", [IMAGE], result=[_text("gone")])
    assert _outcome(good, good).is_good
    assert not _outcome(good, bad).is_good
    assert not _outcome(good, Side(None, None, "lost connection")).is_good
    assert not _outcome().is_good


def test_what_is_only_named_is_not_counted_as_seen() -> None:
    seen = _side("codex", [IMAGE])
    named = _side("codex", [SOUND], result=[_text("[audio 1: audio/wav; handle aud_1]")])
    outcome = _outcome(seen, named)
    assert (outcome.count("through"), outcome.count_seen("through"), outcome.count_seen("direct")) == (2, 1, 2)
    assert count_lossless(outcome, "through") == "  2 of 2 shown or kept, 1 seen"
    assert (outcome.to_json()["seen_direct"], outcome.to_json()["seen_through"]) == (2, 1)


@pytest.mark.parametrize("width", [48, 80, 100, 200])
def test_a_narrow_terminal_gets_every_host_below_others_where_they_do_not_fit_beside_them(width: int) -> None:
    hosts = tuple(SIMULATORS.values())
    cells = tuple(Cell(host, CASES[0], _side(host.name, [IMAGE]), _side(host.name, [IMAGE])) for host in hosts)
    out = io.StringIO()
    print_table(
        Outcome(hosts, CASES[:1], cells, 1.0), Console(file=out, width=width, force_terminal=True, color_system=None)
    )
    lines = out.getvalue().splitlines()
    words = re.findall(r"\S+", "\n".join(line for line in lines if "shown or kept" not in line))
    assert max(map(len, lines)) <= width
    assert Counter(word for host in hosts for word in host.title.split()) <= Counter(words)
    assert words.count("→") == len(hosts) + 1  # one of them in the legend


def test_the_outcome_as_json_names_every_cell_with_its_problems() -> None:
    written = _outcome(_side("codex", [IMAGE]), Side(None, None, "lost connection")).to_json()
    assert (written["good"], written["cells"], written["good_direct"], written["good_through"]) == (False, 2, 2, 1)
    first, second = written["results"]
    assert (first["host"], first["tool"], first["through"]["images_shown"]) == ("codex", "charts__draw_chart", 1)
    assert second["through"] == {"summary": "call failed", "good": False, "problems": ["lost connection"]}

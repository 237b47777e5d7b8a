"""The HTML report: one file, well formed, with nothing from elsewhere and nothing that runs."""

import base64
import io
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from gateway.cli.demo.cases import CASES
from gateway.cli.demo.outcome import Cell, Outcome
from gateway.cli.demo.page import page, write_page
from gateway.cli.demo.token_costs import costs_json, costs_of_all
from gateway.core.tokens import text_tokens
from gateway.hosts.simulators.hosts import FIRST
from gateway.hosts.simulators.side import Side, side

EMPTY_ELEMENTS = {"meta", "br", "img", "link"}
HOSTILE = "<script>alert(1)</script>\"'><img src=http://evil.example/x onerror=alert(1)>\x1b[31m\x00"


class _Reader(HTMLParser):
    """Checks that tags nest, and collects elements and attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in EMPTY_ELEMENTS:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _picture(side_px: int) -> str:
    out = io.BytesIO()
    noise = Image.frombytes("RGB", (side_px, side_px), random.Random(1).randbytes(side_px * side_px * 3))
    noise.save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def _outcome(*content: Any, **more: Any) -> Outcome:
    hosts = FIRST
    result = {"content": list(content), **more}
    cells = tuple(
        Cell(host, CASES[0], side(result, result, None, host), Side(None, None, f"failed: {HOSTILE}")) for host in hosts
    )
    return Outcome(hosts, CASES[:1], cells, 3.0)


def _image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type}


def _read(text: str) -> _Reader:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": HOSTILE}],
        [_image(_picture(20), f'image/png"{HOSTILE}')],
        [_image(base64.b64encode(b"<svg onload='alert(1)'/>").decode(), "image/svg+xml")],
        [{"type": "resource_link", "uri": f"x:{HOSTILE}", "name": HOSTILE}],
        [{"type": "audio", "data": "AAAA", "mimeType": HOSTILE}],
        [],
    ],
)
def test_hostile_content_stays_text(content: list[Any]) -> None:
    reader = _read(page(_outcome(*content, structuredContent={"a": HOSTILE})))
    assert not {"script", "img", "iframe", "object", "embed", "svg", "form"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]


def test_the_page_forbids_itself_everything_but_its_own_pictures_and_style() -> None:
    text = page(_outcome(_image(_picture(20))))
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in text
    assert not [value for name, value in _read(text).attributes if name in ("src", "href") and value[:1] != "#"]


def test_every_link_leads_to_a_place_on_the_page() -> None:
    attributes = _read(page(_outcome(_image(_picture(20))))).attributes
    places = [value for name, value in attributes if name == "id"]
    assert len(places) == len(set(places))
    assert {value[1:] for name, value in attributes if name == "href" and value} <= set(places)


def test_control_characters_do_not_get_into_the_page() -> None:
    text = page(_outcome({"type": "text", "text": HOSTILE}))
    assert not any(ord(char) < 32 and char != "\n" for char in text)


def test_a_picture_that_many_hosts_see_is_in_the_page_once() -> None:
    data = _picture(60)
    assert page(_outcome(_image(data))).count(data) == 1


def test_a_large_picture_is_in_the_page_as_a_small_one() -> None:
    data = _picture(1_500)
    assert len(data) > 8_000_000
    assert len(page(_outcome(_image(data)))) < 2_000_000


def test_a_case_with_small_text_shows_a_part_of_its_picture_pixel_for_pixel() -> None:
    [case] = [case for case in CASES if case.detail]
    original = Image.effect_noise((1_500, 1_000), 40).convert("RGB")
    out = io.BytesIO()
    original.save(out, "PNG")
    result = {"content": [_image(base64.b64encode(out.getvalue()).decode())]}
    cells = tuple(Cell(host, case, side(result, result, None, host), Side(None, None, "no")) for host in FIRST[:3])
    text = page(Outcome(FIRST[:3], (case,), cells, 3.0))
    assert text.count("pixel for pixel") == 2  # Claude Desktop refuses so much
    [name] = set(re.findall(r'class="detail (\w+)"', text))
    [data] = re.findall(rf'\.{name}{{background-image:url\("data:image/webp;base64,([^"]+)"', text)
    with Image.open(io.BytesIO(base64.b64decode(data))) as part:
        assert part.convert("RGB").tobytes() == original.crop((30, 75, 510, 275)).tobytes()
    _read(text)


def test_long_text_and_base64_are_shortened_and_counted() -> None:
    data = _picture(60)
    text = page(_outcome({"type": "text", "text": f"begin {data} " + "word " * 100_000}))
    assert f"{len(data):,} characters of base64" in text
    assert "more characters" in text
    assert len(text) < 60_000


def test_problems_of_both_sides_are_written_out() -> None:
    text = page(_outcome(_image(_picture(20)), structuredContent={"only": "this"}))
    assert "not seen: image/png from content[0]" in text  # Codex, directly
    assert "failed: &lt;script&gt;" in text


def test_the_report_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.html"
    write_page(path, _outcome(_image(_picture(20))))
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_both_sides_say_what_they_cost_and_the_summary_what_all_cost_together() -> None:
    host, inspector = FIRST[0], FIRST[-1]
    long, short = ({"content": [{"type": "text", "text": "word " * times}]} for times in (2_000, 100))
    cells = tuple(
        Cell(one, CASES[0], side(long, long, None, one), side(long, short, None, one)) for one in (host, inspector)
    )
    outcome = Outcome((host, inspector), CASES[:1], cells, 3.0)
    direct, through = text_tokens("word " * 2_000), text_tokens("word " * 100)
    assert costs_json(outcome)[0] == {
        "host": "claude-code",
        "model": "Claude 4.7 and later",
        "direct": direct,
        "through": through,
    }
    text = page(outcome)
    assert f"<td>{direct:,}</td><td>{through:,}</td>" in text
    assert [f"about {tokens:,} tokens" in text for tokens in (direct, through)] == [True, True]
    assert text.count('class="tokens"') == 2  # a person looks at the results of the Inspector, not a model
    _read(text)


def test_what_fails_on_one_side_is_not_in_the_sum() -> None:
    assert all(cost.results == 0 for cost in costs_of_all(_outcome({"type": "text", "text": "word"})))

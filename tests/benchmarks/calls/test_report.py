import re

import pytest

from benchmarks.calls.cases import CASES, IDLE, MEMORY, PER_CALL
from benchmarks.calls.figures import Figures, Ratio, Reference
from benchmarks.calls.gateways import GATEWAYS, ROOT
from benchmarks.calls.goals import HTTP
from benchmarks.calls.report import BEGIN, END, bars, cell, figures_text, filled, number, table

SETTINGS = [str(HTTP), *(str(HTTP.with_tools(count)) for count in (10, 1_000)), MEMORY, "start", "loop"]


@pytest.fixture
def figures() -> Figures:
    """Two rounds of everything; the second of the ways is twice the first, and so on."""
    found = Figures()
    for setting in SETTINGS:
        for case in (*(case.name for case in CASES), IDLE, PER_CALL):
            for place, gateway in enumerate(GATEWAYS):
                for turn in range(2):
                    found.add(Reference(setting, case, gateway.name), turn, 2.0**place * (turn + 1))
    for way in ("naive", "passthrough"):
        for turn in range(2):
            found.add(Reference("sessions", "call at 1", way), turn, 1.0)
            found.add(Reference("sessions", "call at 1,000", way), turn, 1.1)
    return found


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123, "0.012"), (0.1, "0.10"), (0.567, "0.57"), (1.999, "2.00"), (3.14159, "3.1"), (47.6, "48")],
)
def test_a_ratio_has_the_digits_that_count(value: float, text: str) -> None:
    assert number(value) == text


def test_a_cell_has_the_median_and_the_spread():
    assert cell(Ratio(0.5, 1.0, 12.0)) == "**1.00** (0.50–12)"
    assert cell(Ratio(1.0, 1.001, 1.002)) == "**1.00**"
    assert cell(None) == "–"


def test_a_table_is_one_in_markdown():
    assert table(["", "a"], [["b", "c"]]) == "|  | a |\n| --- | --- |\n| b | c |"


def test_every_table_has_as_many_cells_in_each_row(figures: Figures) -> None:
    text = figures_text(figures, ["today"], {"mcp-proxy": "no network"}, "plot.svg")
    assert text.startswith("- today\n\n- Left out: mcp-proxy: no network\n\n### Goals\n")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 6
    for lines in map(str.splitlines, tables):
        assert len({line.count(" | ") for line in lines}) == 1
    assert "| 1,000 tools |" in text
    assert "| call at 1,000 sessions / at one | **1.10** | **1.10** |" in text


def test_ways_are_compared_with_the_naive_gateway(figures: Figures) -> None:
    text = figures_text(figures, [], {}, "plot.svg")
    assert re.search(r"^\| naive \|( \*\*1\.00\*\* \|)+", text, re.MULTILINE)
    assert re.search(r"^\| passthrough \|( \*\*2\.0\*\* \|)+", text, re.MULTILINE)
    assert bars(figures, str(HTTP), ["passthrough"])["text"] == {"passthrough": Ratio(2.0, 2.0, 2.0)}


def test_a_run_that_measured_nothing_has_a_report_too():
    assert figures_text(Figures(), [], {}, "plot.svg").count("Not measured.") == 3


def test_the_page_takes_the_figures_and_keeps_the_rest():
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    written = filled(page, "figures\n")
    assert f"{BEGIN}figures\n{END}" in written
    assert filled(written, page.split(BEGIN)[1].split(END)[0]) == page

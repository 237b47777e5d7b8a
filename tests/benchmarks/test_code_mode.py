"""The proof of code mode: twenty screenshots, compared by a tool, two of them shown, for a tenth of the tokens."""

import re

import pytest

from benchmarks.tokens.code_mode import measure, saves_enough
from benchmarks.tokens.pages import DOCS

pytestmark = pytest.mark.anyio


async def test_a_script_costs_a_fraction_of_twenty_calls_and_the_page_says_how_much():
    page = (DOCS / "code-mode.md").read_text("utf-8").splitlines()
    rows = await measure(("claude-code", "codex"))
    assert saves_enough(rows)
    for row in rows:
        assert row.pictures == (20, 2), row
        line = next(line for line in page if line.startswith(f"| {row.title} |"))
        written = [int(number.replace(",", "")) for number in re.findall(r"\| ([\d,]+)", line)]
        measured = [row.calls, 20, row.script, 2, row.declared]
        # Captions name handles, which are other letters each time.
        assert written == pytest.approx(measured, rel=0.02), "python -m benchmarks.tokens --write"

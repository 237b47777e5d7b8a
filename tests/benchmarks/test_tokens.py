"""The figures of the pages are those that the benchmark counts today."""

import re
from collections.abc import Iterable
from itertools import pairwise

import pytest

from benchmarks.tokens import big_json, budgets
from benchmarks.tokens.pages import DOCS

pytestmark = pytest.mark.anyio


async def test_big_json_costs_what_the_page_says():
    rows = await big_json.measure()
    assert "\n".join(big_json.table(rows)) in (DOCS / "results.md").read_text("utf-8"), (
        "python -m benchmarks.tokens --write"
    )
    for row in rows:
        assert max(row.hosts.values()) < row.whole / 2
        assert not row.is_table or row.found <= 0.85 * row.found_json


async def test_results_lists_and_budgets_cost_what_the_page_says():
    page = (DOCS / "tokens.md").read_text("utf-8")
    costs = await budgets.measure()
    assert budgets.keeps_budgets(costs.kept)
    assert "\n".join(budgets.server_table(costs.servers)) in page, "python -m benchmarks.tokens --write"
    for table in (budgets.model_table(costs.models), budgets.budget_table(costs.kept)):
        lines = list(table)
        start = page.index(lines[0])
        written, measured = numbers(page[start:].splitlines()[: len(lines)]), numbers(lines)
        # Encoders of pictures differ a little.
        assert written == pytest.approx(measured, rel=0.02, abs=10), "python -m benchmarks.tokens --write"

    for more, less in pairwise(costs.kept.values()):
        for before, after in zip(more, less, strict=True):
            assert after.tokens <= before.tokens
            assert after.chars <= before.chars
            assert len(after.images) <= len(before.images)


def numbers(lines: Iterable[str]) -> list[int]:
    return [int(number.replace(",", "")) for line in lines for number in re.findall(r"\d[\d,]*", line)]

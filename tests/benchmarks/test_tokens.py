"""The figures of the pages are those that the benchmark counts today."""

import pytest

from benchmarks.tokens import big_json
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

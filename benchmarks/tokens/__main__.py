"""What results and lists cost models, in tokens, and what tool search, budgets, shapes of JSON and scripts save them.

    .venv/bin/python -m benchmarks.tokens [--write]

`--write` puts the tables into their pages of the documentation. Exit code 1 if tool search finds too little, scripts
save too little, or a result costs more than its budget. Tokens are counted as everywhere in the gateway
(docs/tokens.md); nothing is timed, so the figures are the same on every machine, but for the letters of handles.
"""

import argparse
import sys

import anyio

from benchmarks.tokens import big_json, budgets, code_mode, tool_search
from benchmarks.tokens.pages import write_table


async def _run(write: bool) -> int:
    hosts, scripts = await tool_search.measure(), await code_mode.measure()
    costs = await budgets.measure()
    tables = (
        ("Results by host and model", "tokens.md", "results", budgets.model_table(costs.models)),
        ("Lists by server", "tokens.md", "lists", budgets.server_table(costs.servers)),
        ("What budgets keep", "tokens.md", "budgets", budgets.budget_table(costs.kept)),
        ("Tool search", "tools.md", "tool-search", tool_search.table(hosts)),
        ("Big JSON", "results.md", "big-json", big_json.table(await big_json.measure())),
        ("Code mode", "code-mode.md", "code-mode", code_mode.table(scripts)),
    )
    for title, page, name, lines in tables:
        text = "\n".join(lines) + "\n"
        print(f"{title}\n\n{text}")
        if write:
            write_table(page, name, text)
    good = tool_search.finds_enough(hosts), code_mode.saves_enough(scripts), budgets.keeps_budgets(costs.kept)
    return 0 if all(good) else 1


def main() -> int:
    """Measure, print, and write if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into the documentation")
    return anyio.run(_run, parser.parse_args().write)


if __name__ == "__main__":
    sys.exit(main())

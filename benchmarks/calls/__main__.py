"""`make bench`: measure, print the tables, and write docs/performance.md and its plot.

    make bench                                     everything, in a quarter of an hour; the page is written
    make bench ARGS="--rounds 3"                   the same in about half of that
    make bench ARGS="--quick"                      the same in small, in about two minutes; the page says so
    make bench ARGS="--parts calls --settings 'http to http' --cases text --ways naive passthrough"

What is narrowed by --parts, --settings, --cases or --ways is only printed. Names are parts of names.
"""

import argparse
import asyncio
import datetime
import os
import platform
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.calls.cases import CASES
from benchmarks.calls.gateways import GATEWAYS, ROOT
from benchmarks.calls.goals import HTTP
from benchmarks.calls.plot import svg
from benchmarks.calls.processes import cores
from benchmarks.calls.report import bars, figures_text, filled
from benchmarks.calls.run import PARTS, Options, run

PAGE: Final = ROOT / "docs" / "performance.md"
PLOT: Final = ROOT / "docs" / "performance.svg"
PEERS: Final = ("fastmcp", "mcp-proxy")


def main() -> int:
    """Run, print and write."""
    if sys.platform != "linux":
        print("memory is read from /proc, which only Linux has")
        return 2
    options = _options()
    about = _about(options)
    with tempfile.TemporaryDirectory() as folder:
        done = asyncio.run(run(options, Path(folder)))
    text = figures_text(done.figures, about, done.missing, PLOT.name)
    print(text)
    if options.is_whole:
        PAGE.write_text(filled(PAGE.read_text("utf-8"), text), "utf-8")
        PLOT.write_text(svg(f"Time per call / naive gateway ({HTTP})", bars(done.figures, str(HTTP))), "utf-8")
    return 0


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="make bench", description="What a call costs, beside other gateways.")
    parser.add_argument("--quick", action="store_true", help="less of everything, in about two minutes")
    parser.add_argument("--rounds", type=int, help="how often each is measured (5; quick: 2)")
    for name, all_of_them in (
        ("parts", list(PARTS)),
        ("settings", ["http to stdio, 2026-07-28", "..."]),
        ("cases", [case.name for case in CASES]),
        ("ways", [gateway.name for gateway in GATEWAYS]),
    ):
        parser.add_argument(f"--{name}", nargs="+", default=(), metavar="NAME", help=f"of {', '.join(all_of_them)}")
    given = parser.parse_args()
    return Options(
        rounds=given.rounds or (2 if given.quick else 5),
        window=0.05 if given.quick else 0.15,
        quick=given.quick,
        ways=given.ways,
        cases=given.cases,
        settings=given.settings,
        parts=given.parts,
    )


def _about(options: Options) -> Sequence[str]:
    """What a reader must know before believing a number."""
    today = datetime.datetime.now(datetime.UTC).date()
    kind = "a **quick run**, too short to rely on" if options.quick else "a whole run"
    load = os.getloadavg()[0]
    return [
        f"{today}, {kind}: {options.rounds} rounds; {cores()} cores, load {load:.1f} before it began; "
        f"{platform.system()}, Python {platform.python_version()}.",
        f"Beside {' and '.join(f'{peer} {_locked(peer)}' for peer in PEERS)}; the naive gateway stands on mcp "
        f"{_locked('mcp', 'dev')}.",
    ]


def _locked(package: str, lock: str | None = None) -> str:
    """The version of a package that a lock file has."""
    text = (ROOT / "requirements" / f"{lock or f'bench-{package}'}.txt").read_text("utf-8")
    found = re.search(rf"^{re.escape(package)}==(\S+)", text, re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    sys.exit(main())

"""`make load`: measure what a gateway carries, print it, and write docs/scaling.md and docs/scaling.json.

    make load                                      everything, in eight minutes; the page is written
    make load ARGS="--quick"                       the same in small, in two minutes; only printed
    make load ARGS="--quick --write"               the same, and the page is written, which says so
    make load ARGS="--url http://127.0.0.1:8484/mcp --tool docs__search --arguments '{}' --rate 50 --seconds 30"

With `--url`, gateways that run already get the calls, in turn; there may be several, or one load balancer.
"""

import argparse
import asyncio
import datetime
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.calls.gateways import ROOT
from benchmarks.calls.processes import cores
from benchmarks.load.hosts import Target
from benchmarks.load.model import COSTS
from benchmarks.load.pattern import LIST
from benchmarks.load.report import filled, run_text, stages_table
from benchmarks.load.run import Options, run, run_urls

PAGE = ROOT / "docs" / "scaling.md"
QUICK = Options(hosts=200, calls=400, seconds=12.0, upstreams=50, levels=(0.5, 1.5))


def main() -> int:
    """Run, print and write."""
    given = _parser().parse_args()
    if given.url:
        return _load_urls(given)
    options = QUICK if given.quick else Options()
    about = _about(quick=given.quick, options=options)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(run(options, Path(folder)))
    text = run_text(found, about)
    print(text)
    if given.write or not given.quick:
        PAGE.write_text(filled(PAGE.read_text("utf-8"), text), "utf-8")
        COSTS.write_text(json.dumps(found.costs.to_json(), indent=2) + "\n", "utf-8")
    return 0


def _load_urls(given: argparse.Namespace) -> int:
    arguments: dict[str, Any] = json.loads(given.arguments)
    try:
        targets = [Target.of_url(url, os.environ.get("MCP_GATEWAY_TOKEN"), arguments) for url in given.url]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    mix = {LIST: 1.0} if given.tool is None else {given.tool: 0.95, LIST: 0.05}
    options = Options(hosts=given.hosts, at_once=given.at_once, seconds=given.seconds)
    found = asyncio.run(run_urls(options, targets, mix, given.rate))
    print(stages_table([found]))
    for words, count in found.answers.failed.most_common(5):
        print(f"{count:,} failed: {words}")
    return 1 if found.answers.failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make load", description="What a gateway carries.")
    parser.add_argument("--quick", action="store_true", help="less of everything, in about two minutes")
    parser.add_argument("--write", action="store_true", help="write the page after --quick, too")
    parser.add_argument("--url", nargs="+", default=(), help="gateways that run; the token is $MCP_GATEWAY_TOKEN")
    parser.add_argument("--tool", help="with --url: the tool to call; without one, tools are listed")
    parser.add_argument("--arguments", default="{}", help="with --url: the tool's arguments, as JSON")
    parser.add_argument("--rate", type=float, default=20.0, help="with --url: calls per second, of all hosts together")
    parser.add_argument("--hosts", type=int, default=100, help="with --url: the number of hosts")
    parser.add_argument("--at-once", type=int, default=64, help="with --url: calls in flight at the most")
    parser.add_argument("--seconds", type=float, default=30.0, help="with --url: how long")
    return parser


def _about(*, quick: bool, options: Options) -> list[str]:
    """Return what a reader must know before believing a number."""
    today = datetime.datetime.now(datetime.UTC).date()
    kind = "a **quick run**, too short to rely on" if quick else "a whole run"
    load = os.getloadavg()[0]
    return [
        f"{today}, {kind}: {options.hosts:,} hosts, half of them of 2026-07-28 and half of 2025-11-25, at most "
        f"{options.at_once} calls at once, {options.seconds:g} s a stage; profile claude-code.",
        f"{cores()} cores, which hosts, gateway, media workers and upstream share, load {load:.1f} before it began; "
        f"{platform.system()}, Python {platform.python_version()}.",
    ]


if __name__ == "__main__":
    raise SystemExit(main())

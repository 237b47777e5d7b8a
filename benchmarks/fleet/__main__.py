"""`make fleet`: break everything around three replicas while hosts call, and print what became of the calls.

    make fleet                          200 hosts behind nginx, in six minutes; docs/scaling.md gets the figures
    make fleet ARGS="--quick"           40 hosts, shorter phases, in two minutes; only printed
    make fleet ARGS="--quick --relay"   the same behind a relay of its own, without nginx

It ends with 1 if anything that was promised is lost, or was seen by somebody else. It needs Redis and nginx.
"""

import argparse
import asyncio
import datetime
import os
import platform
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.calls.gateways import ROOT
from benchmarks.calls.processes import cores
from benchmarks.fleet.programs import Missing
from benchmarks.fleet.report import filled, run_text
from benchmarks.fleet.run import Options, run

PAGE = ROOT / "docs" / "scaling.md"
QUICK = Options(hosts=40, think=4.0, calm=8.0, redis_away=3.0, store_away=8.0)


def main() -> int:
    """Run, print and write."""
    parser = argparse.ArgumentParser(prog="make fleet", description="Break everything around a fleet of gateways.")
    parser.add_argument("--quick", action="store_true", help="fewer hosts and shorter phases, in about two minutes")
    parser.add_argument("--write", action="store_true", help="write the page after --quick, too")
    parser.add_argument("--relay", action="store_true", help="a relay in place of nginx")
    parser.add_argument("--keep", type=Path, help="folder for the programs' logs and configuration, which stay there")
    given = parser.parse_args()
    options = replace(QUICK if given.quick else Options(), nginx=not given.relay)
    about = _about(options, quick=given.quick)
    with tempfile.TemporaryDirectory(prefix="fleet-") as temporary:
        folder: Path = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            found = asyncio.run(run(options, folder.resolve()))
        except Missing as missing:
            print(missing, file=sys.stderr)
            return 2
    text = run_text(found, options, about)
    print(text)
    if given.write or not given.quick:
        PAGE.write_text(filled(PAGE.read_text("utf-8"), text), "utf-8")
    return 1 if found.ledger.broken_promises() else 0


def _about(options: Options, *, quick: bool) -> str:
    today = datetime.datetime.now(datetime.UTC).date()
    kind = "a **quick run**" if quick else "a whole run"
    proxy = "nginx" if options.nginx else "a relay"
    return (
        f"{today}, {kind}: three replicas, the server, a Redis, a store (moto's S3) and {proxy} share {cores()} cores "
        f"with all hosts, load {os.getloadavg()[0]:.1f} before it began; {platform.system()}, "
        f"Python {platform.python_version()}."
    )


if __name__ == "__main__":
    raise SystemExit(main())

"""The official conformance suite, directly and through the gateway: `python -m tests.conformance.run`.

Prints a table and each lost check, writes docs/conformance.md, and ends with 1 on any loss. `--json` writes what was
found for a program, and then leaves the page alone.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.conformance.comparing import PASSED, Comparison, compare, failures
from tests.conformance.explained import EXPLAINED, LEFT_OUT, OAUTH_NOT_APPLICABLE
from tests.conformance.page import OAuthScenario, page
from tests.conformance.processes import ROOT, DidNotStart, gateway, upstream
from tests.conformance.suite import CLIENT_SCENARIOS, OAUTH_SCENARIOS, Broken, Check, Suite
from tests.conformance.waiting_clients import waiting_clients

T = TypeVar("T")
PAGE = ROOT / "docs" / "conformance.md"
HANDSHAKE, MODERN = ERAS = ("2025-11-25", "2026-07-28")
AT_ONCE = 2
"""Client scenarios that run side by side: they wait more than they work."""

ATTEMPTS = {"sse-retry": 3}
"""Scenarios that are tried again: here the suite's server keeps its sessions in one, and takes the stream that a second
session opens late for the first one's return."""

UPSTREAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "both eras": ((), ERAS),
    "2025-11-25 only": (("--legacy-only",), (HANDSHAKE,)),
    "2026-07-28 only": (("--modern-only",), (MODERN,)),
}
"""What the upstream speaks: the options that make it so, and the revisions in which it can be asked directly."""

Found = dict[tuple[str, str], list[Check]]
"""By what the upstream speaks, and what the host does."""


@dataclass(frozen=True)
class Outcome:
    """All that was found."""

    suite: str
    server: list[Comparison]
    client: list[Comparison]
    oauth: list[OAuthScenario]
    unsound: list[str]
    """What fails directly: nothing can be said about the gateway there."""

    @property
    def lost(self) -> list[str]:
        return [
            *(f"directly, without any gateway: {problem}" for problem in self.unsound),
            *(f"{each.title}, {each.era}: {loss}" for each in self.every for loss in each.lost),
            *(
                f"{each.title}, {each.era}: {name} is explained, but passes"
                for each in self.every
                for name in each.stale
            ),
            *(f"auth/{each.name}, {each.era}: {each.found}" for each in self.oauth if each.found and not each.why),
            *(f"auth/{each.name} is explained, but passes" for each in self.oauth if each.why and not each.found),
        ]

    @property
    def every(self) -> list[Comparison]:
        return [*self.server, *self.client]

    @property
    def page(self) -> str:
        return page(self.suite, self.server, self.client, self.oauth)


def measure(suite: Suite) -> Outcome:
    """Run everything, and compare."""
    direct, through = _server_scenarios(suite)
    # Across the eras, what an upstream does that speaks both.
    base = {key: direct.get(key) or direct["both eras", key[1]] for key in through}
    server = [compare(*key, base[key], found, EXPLAINED.get(key)) for key, found in through.items()]
    ours = _timed("client scenarios, directly", partial(_client_scenarios, suite))
    theirs = _timed("client scenarios, gateway", partial(_client_scenarios, suite, "--through-gateway"))
    client = [compare("client scenarios", era, ours[era], theirs[era]) for era in ERAS]
    bad = [check for checks in [*direct.values(), *ours.values()] for check in failures(checks)]
    unsound = [f"{check.scenario}: {check.id}: {check.message}" for check in bad]
    oauth = _timed("OAuth scenarios, gateway", partial(_oauth_scenarios, suite))
    return Outcome(suite.version, server, client, oauth, unsound)


def _server_scenarios(suite: Suite) -> tuple[Found, Found]:
    """Each upstream directly, as far as that goes, and through a gateway; one after the other."""
    direct: Found = {}
    through: Found = {}
    for title, (options, spoken) in UPSTREAMS.items():
        with upstream(*options) as url:
            for era in spoken:
                direct[title, era] = _timed(f"{title}, {era}, directly", partial(suite.server, url, era))
            with gateway(url) as served:
                for era in ERAS:
                    through[title, era] = _timed(f"{title}, {era}, gateway", partial(suite.server, served, era))
    return direct, through


def _client_scenarios(suite: Suite, *options: str) -> dict[str, list[Check]]:
    """By the revision that the suite's server speaks."""
    jobs = [(scenario, era) for era in ERAS for scenario in CLIENT_SCENARIOS[era]]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda job: _client_scenario(suite, *job, *options), jobs))
    found: dict[str, list[Check]] = {era: [] for era in ERAS}
    for (_, era), checks in zip(jobs, results, strict=True):
        found[era] += [check for check in checks if not _left_out(check)]
    return found


def _client_scenario(suite: Suite, scenario: str, era: str, *options: str) -> list[Check]:
    for _ in range(ATTEMPTS.get(scenario, 1)):
        checks = suite.client(scenario, era, *options)
        if not failures(checks):
            break
    return checks


def _oauth_scenarios(suite: Suite) -> list[OAuthScenario]:
    """Without any comparison: there is nothing to pass on, since the gateway itself is the client."""
    jobs = [(name, era) for era, names in OAUTH_SCENARIOS.items() for name in names]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda job: _oauth_scenario(suite, *job), jobs))


def _oauth_scenario(suite: Suite, name: str, era: str) -> OAuthScenario:
    missed = [f"{check.id}: {check.status}" for check in suite.oauth(name, era) if check.status != PASSED]
    return OAuthScenario(name, era, "; ".join(missed), OAUTH_NOT_APPLICABLE.get(name))


def _left_out(check: Check) -> bool:
    scenario, beginning = LEFT_OUT
    return check.scenario == scenario and check.id.startswith(beginning)


def _timed(what: str, work: Callable[[], T]) -> T:
    start = time.monotonic()
    done = work()
    print(f"{what}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return done


def table(comparisons: Iterable[Comparison]) -> str:
    """The figures, for a terminal."""
    rows = [("upstream", "host", "direct", "gateway", "lost", "explained")]
    rows += [
        (each.title, each.era, str(each.direct), str(each.gateway), str(len(each.lost)), _explained(each))
        for each in comparisons
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _explained(each: Comparison) -> str:
    return str(len(each.losses) - len(each.lost))


def main() -> int:
    """Read the command line, measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found there, and no page")
    parser.add_argument("--node-modules", type=Path, default=ROOT / "node_modules", help="where the suite is installed")
    asked = parser.parse_args()
    try:
        with waiting_clients() as clients:
            outcome = measure(Suite.of(asked.node_modules, clients))
    except (Broken, DidNotStart) as problem:
        print(problem, file=sys.stderr)
        return 2
    print(table(outcome.every), *outcome.lost, sep="\n")
    if asked.json is None:
        PAGE.write_text(outcome.page, "utf-8", newline="\n")
    else:
        asked.json.write_text(json.dumps({**asdict(outcome), "lost": outcome.lost, "page": outcome.page}), "utf-8")
    return 1 if outcome.lost else 0


if __name__ == "__main__":
    sys.exit(main())

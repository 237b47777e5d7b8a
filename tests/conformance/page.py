"""docs/conformance.md, from the comparisons."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from tests.conformance.comparing import Comparison, Loss
from tests.conformance.explained import WHY_LEFT_OUT

ADDRESS = re.compile(r"127\.0\.0\.1:\d+|localhost:\d+")
LONGEST = 160
"""Characters of what the suite says about one check."""

INTRODUCTION = """# Conformance

Results of the official conformance suite (npm `@modelcontextprotocol/conformance` {suite}, with the Python SDK `mcp`
{sdk}) for an upstream directly, and for the same upstream through a gateway with `prefix = "never"` and the profile
`passthrough`. Written by `make conformance`, which fails on any loss; so does `make test`.

The comparison is check by check and count by count: a check that passes less often through the gateway, or is skipped,
warned about or not reached there, is lost. The upstream is the project's own, `tests/conformance/upstream.py`.
"""

SERVER = """
## Server scenarios

The suite is the host. If the host and the upstream are of different eras, there is no direct connection to compare
with: the direct figures are then those of the upstream that speaks both.
The scenarios of the skills extension (`sep-2640-*`), which belong to no revision, are run in each. Those of tasks
(`tasks-*`), and those of skills for clients (`sep-2640-client-*`), are run by `make test`, which fails on any loss too.

| the upstream speaks | the host speaks | scenarios | checks passed directly | of them through the gateway | lost |
|---|---|---|---|---|---|
"""

CLIENT = """
## Client scenarios

The suite is the upstream, and judges the client that connects to it: `tests/conformance/client.py` directly, or a
gateway that the same client uses.

{left_out}
| the suite's server speaks | scenarios | checks passed directly | of them through the gateway | lost |
|---|---|---|---|---|
"""


OAUTH = """
## OAuth scenarios

The suite's `authorization` run against the gateway's own authorization server passes without a failure, warning or skip
(`tests/real/test_authorization.py`).

In the table, the suite is the upstream and its authorization server (`auth/*`), and judges the gateway as the client. A
scenario passes if all its checks do; a warning counts as a failure. `tests/conformance/oauth_client.py` is the person
who logs in.

| revision | scenarios | passed |
|---|---|---|
"""

OAUTH_NOT_PASSED = """
| does not pass | why |
|---|---|
"""


@dataclass(frozen=True)
class OAuthScenario:
    """An OAuth scenario: what it found fault with, nothing if it passes, and why that cannot be otherwise, if so."""

    name: str
    era: str
    found: str
    why: str | None = None


def page(suite: str, server: Sequence[Comparison], client: Sequence[Comparison], oauth: Sequence[OAuthScenario]) -> str:
    """Return the whole page."""
    told = [
        INTRODUCTION.format(suite=suite, sdk=version("mcp")),
        SERVER,
        *(f"| {each.title} | {each.era} | {_figures(each)} |\n" for each in server),
        *_losses(server),
        CLIENT.format(left_out=WHY_LEFT_OUT),
        *(f"| {each.era} | {_figures(each)} |\n" for each in client),
        *_losses(client),
        OAUTH,
        *_oauth_rows(oauth),
    ]
    return "".join(told)


def _oauth_rows(oauth: Sequence[OAuthScenario]) -> list[str]:
    rows: list[str] = []
    for era in dict.fromkeys(each.era for each in oauth):
        of_era = [each for each in oauth if each.era == era]
        rows.append(f"| {era} | {len(of_era)} | {sum(not each.found for each in of_era)} |\n")
    missed = [f"| auth/{each.name} | {each.why or '**lost**: ' + cell(each.found)} |\n" for each in oauth if each.found]
    return [*rows, OAUTH_NOT_PASSED, *missed] if missed else rows


def _figures(each: Comparison) -> str:
    explained = len(each.losses) - len(each.lost)
    lost = f"{len(each.lost)}" + (f" (and {explained} explained below)" if explained else "")
    return f"{each.scenarios} | {each.direct} | {each.gateway} | {lost}"


def _losses(comparisons: Sequence[Comparison]) -> list[str]:
    return [
        f"\n### {each.title}, {each.era}\n\n"
        "| scenario | check | directly | through the gateway | why |\n|---|---|---|---|---|\n"
        + "".join(f"| {_row(loss)} |\n" for loss in each.losses)
        for each in comparisons
        if each.losses
    ]


def _row(loss: Loss) -> str:
    why = loss.why or "**lost**: " + cell(loss.found)
    return f"{loss.scenario} | {loss.id} ({loss.name}) | {loss.direct} | {loss.gateway} | {why}"


def cell(said: str) -> str:
    """What the suite says, in a table: one line, and the same on every run."""
    line = ADDRESS.sub("127.0.0.1", " ".join(said.split())).replace("|", "\\|")
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."

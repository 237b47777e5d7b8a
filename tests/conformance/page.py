"""docs/conformance.md, from the comparisons."""

import re
from collections.abc import Sequence
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

| the upstream speaks | the host speaks | scenarios | checks passed directly | of them through the gateway | lost |
|---|---|---|---|---|---|
"""

CLIENT = """
## Client scenarios

The suite is the upstream, and judges the client that connects to it: `tests/conformance/client.py` directly, or a
gateway that the same client uses. The OAuth scenarios (`auth/*`) are left out: the gateway does not log in to
upstreams.

{left_out}
| the suite's server speaks | scenarios | checks passed directly | of them through the gateway | lost |
|---|---|---|---|---|
"""


def page(suite: str, server: Sequence[Comparison], client: Sequence[Comparison]) -> str:
    """Return the whole page."""
    told = [
        INTRODUCTION.format(suite=suite, sdk=version("mcp")),
        SERVER,
        *(f"| {each.title} | {each.era} | {_figures(each)} |\n" for each in server),
        *_losses(server),
        CLIENT.format(left_out=WHY_LEFT_OUT),
        *(f"| {each.era} | {_figures(each)} |\n" for each in client),
        *_losses(client),
    ]
    return "".join(told)


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

"""The goals: ratios of medians of one run, what they must be, and what they should be."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks.calls.cases import (
    FIRST_ANSWER,
    IDLE,
    IMPORTING,
    LIST,
    LOOP,
    LOOP_BLOCKED,
    MEMORY,
    PER_CALL,
    START,
    STRUCTURED,
    TEXT,
)
from benchmarks.calls.figures import Figures, Ratio, Reference
from benchmarks.calls.gateways import BY_TARGET, CONNECTED, FLOOR, MCP_PROXY, NAIVE, PASSTHROUGH, Setting
from benchmarks.calls.wire import Era

HTTP: Final = Setting("http", "http", Era.STATELESS)
TO_STDIO: Final = Setting("http", "stdio", Era.HANDSHAKE)


class Goal(NamedTuple):
    """A ratio of two things. `at_least`: more is better."""

    title: str
    must: float
    aim: float
    over: Reference
    under: Reference | None
    at_least: bool = False

    def meets(self, ratio: Ratio, bound: float) -> bool:
        """Whether the median does."""
        return ratio.median >= bound if self.at_least else ratio.median <= bound


def _beside(
    title: str, must: float, aim: float, case: str, base: str, setting: str = str(HTTP), way: str = PASSTHROUGH
) -> Goal:
    return Goal(title, must, aim, Reference(setting, case, way), Reference(setting, case, base))


GOALS: Final[Sequence[Goal]] = (
    _beside("small call, latency / naive", 0.60, 0.35, TEXT, NAIVE),
    _beside("small call, latency / floor", 7, 4, TEXT, FLOOR),
    Goal("calls per second at 16 at once / naive", 2, 4, Reference(str(HTTP), "16 at once", NAIVE),
         Reference(str(HTTP), "16 at once", PASSTHROUGH), at_least=True),
    _beside("1 MB image / naive", 0.85, 0.6, "1 MB", NAIVE),
    _beside("8 MB image / naive", 0.85, 0.65, "8 MB", NAIVE),
    _beside("8 MB image, http to stdio, / mcp-proxy", 0.35, 0.2, "8 MB", MCP_PROXY, str(TO_STDIO)),
    _beside("small call, latency / FastMCP, connected", 0.5, 0.25, TEXT, CONNECTED),
    _beside("small call, latency / FastMCP, by URL", 0.1, 0.03, TEXT, BY_TARGET),
    Goal("peak memory per 8 MB call in flight / bytes on the wire", 5, 3, Reference(MEMORY, PER_CALL, PASSTHROUGH),
         None),
    _beside("idle memory / naive", 1.25, 1.1, IDLE, NAIVE, MEMORY),
    Goal("tools/call at 1,000 tools / at 10", 1.1, 1.05, Reference(str(HTTP.with_tools(1_000)), TEXT, PASSTHROUGH),
         Reference(str(HTTP.with_tools(10)), TEXT, PASSTHROUGH)),
    _beside("tools/list at 1,000 tools / naive", 0.2, 0.05, LIST, NAIVE, str(HTTP.with_tools(1_000))),
    Goal("structured result with output schema / text result", 1.1, 1.0,
         Reference(str(HTTP), STRUCTURED, PASSTHROUGH), Reference(str(HTTP), TEXT, PASSTHROUGH)),
    _beside("first answer over stdio / importing the SDK", 0.1, 0.06, FIRST_ANSWER, IMPORTING, START, FIRST_ANSWER),
    Goal("longest block of the loop / 20 ms", 1, 1, Reference(LOOP, LOOP_BLOCKED, "claude-code"), None),
)  # fmt: skip
"""They hold with the envelope, the profile and the notes in place: there is no way around them."""


def verdict(goal: Goal, figures: Figures) -> tuple[Ratio | None, str]:
    """What was measured, and whether that is enough."""
    ratio = figures.ratio(goal.over, goal.under)
    if ratio is None:
        return None, "not measured"
    if goal.meets(ratio, goal.aim):
        return ratio, "aim"
    return ratio, "must" if goal.meets(ratio, goal.must) else "**not met**"

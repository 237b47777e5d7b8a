"""Tables of ratios, in Markdown. No number leaves here that is a time or a size: those depend on the machine."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final

from benchmarks.calls.cases import (
    FIRST_ANSWER,
    IDLE,
    IMPORTING,
    LOOP,
    LOOP_AWAY,
    LOOP_BLOCKED,
    LOOP_COMPUTING,
    MEMORY,
    PER_CALL,
    PER_UPSTREAM,
    PORT_OPEN,
    START,
)
from benchmarks.calls.figures import Figures, Ratio, Reference
from benchmarks.calls.gateways import CONNECTED, DIRECT, FLOOR, GATEWAYS, NAIVE, PASSTHROUGH
from benchmarks.calls.goals import GOALS, Goal, verdict

BEGIN: Final = "<!-- figures:begin (written by make bench) -->\n"
END: Final = "<!-- figures:end -->\n"
NOTHING: Final = "–"


def filled(page: str, text: str) -> str:
    """The page, with the text in the place of the figures."""
    before, rest = page.split(BEGIN, 1)
    return f"{before}{BEGIN}{text}{END}{rest.split(END, 1)[1]}"


def figures_text(figures: Figures, about: Sequence[str], missing: Mapping[str, str], plot: str) -> str:
    """Everything that a run says, from what it was run on to the last table."""
    parts = [
        "\n".join(f"- {line}" for line in about),
        "\n".join(f"- Left out: {name}: {reason}" for name, reason in missing.items()),
        "### Goals\n\n" + goals_table(figures),
        f"### Calls\n\n![Time per call beside the naive gateway]({plot})",
        *_call_tables(figures),
        "### Many tools\n\n" + _many(figures),
        "### Many sessions\n\n" + _sessions(figures),
        "### Start and memory\n\n" + _processes(figures),
        "### The event loop\n\n" + _loop(figures),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def goals_table(figures: Figures) -> str:
    """Each goal, and whether it is reached."""
    rows: list[list[str]] = []
    for goal in GOALS:
        ratio, reached = verdict(goal, figures)
        rows.append([goal.title, cell(ratio), _bound(goal, goal.must), _bound(goal, goal.aim), reached])
    return table(["ratio", "now", "must", "aim", "reached"], rows)


def cell(ratio: Ratio | None) -> str:
    """The median, and between what the rounds were, where they differ."""
    if ratio is None:
        return NOTHING
    low, median, high = map(number, ratio)
    return f"**{median}**" if low == high else f"**{median}** ({low}–{high})"


def number(value: float) -> str:
    """Two digits that count, or all before the point."""
    if value >= 10:
        return f"{value:.0f}"
    if value >= 0.1:
        return f"{value:.1f}" if value >= 2 else f"{value:.2f}"
    return f"{value:.2g}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _bound(goal: Goal, bound: float) -> str:
    return f"{'at least ' if goal.at_least else ''}{bound:g}"


def _call_tables(figures: Figures) -> Iterable[str]:
    """One table for each setting of the calls, as ratios to the naive gateway."""
    for setting in figures.settings():
        if " to " in setting and not setting.endswith("tools"):
            cases = figures.cases(setting)
            rows = [
                [way, *(cell(beside_naive(figures, setting, case, way)) for case in cases)]
                for way in _in_order(figures.ways(setting))
            ]
            yield f"**{setting}**\n\n" + table(["", *cases], rows)


def beside_naive(figures: Figures, setting: str, case: str, way: str) -> Ratio | None:
    """The ratio of a way to the naive gateway."""
    return figures.ratio(Reference(setting, case, way), Reference(setting, case, NAIVE))


def _in_order(ways: Iterable[str]) -> list[str]:
    order = [gateway.name for gateway in GATEWAYS]
    return sorted((way for way in ways if way in order), key=order.index)


def _many(figures: Figures) -> str:
    """What each case costs with many tools: to the same with ten, and to the naive gateway with as many."""
    settings = [setting for setting in figures.settings() if setting.endswith(" tools")]
    if not settings:
        return "Not measured."
    rows: list[list[str]] = []
    for case, way in product(figures.cases(settings[0]), _in_order(figures.ways(settings[0]))):
        ten = Reference(settings[0], case, way)
        rows.append(
            [f"{case}, {way} / with ten", *(cell(figures.ratio(Reference(each, case, way), ten)) for each in settings)]
        )
        if way != NAIVE:
            rows.append(
                [f"{case}, {way} / naive", *(cell(beside_naive(figures, each, case, way)) for each in settings)]
            )
    return table(["", *(setting.rsplit(", ", 1)[1] for setting in settings)], rows)


def _sessions(figures: Figures) -> str:
    """A call at many sessions to one at one; the memory of a session to one of the naive gateway."""
    cases, ways = figures.cases("sessions"), _in_order(figures.ways("sessions"))
    if not cases:
        return "Not measured."
    rows: list[list[str]] = []
    for case in cases:
        is_call = case.startswith("call")
        if case == "call at 1":
            continue
        ratios = [
            figures.ratio(
                Reference("sessions", case, way),
                Reference("sessions", "call at 1", way) if is_call else Reference("sessions", case, NAIVE),
            )
            for way in ways
        ]
        title = f"{case} sessions / at one" if is_call else f"{case} sessions, each / naive"
        rows.append([title, *map(cell, ratios)])
    return table(["", *ways], rows)


def _processes(figures: Figures) -> str:
    """Start-up and memory, a column for each gateway."""
    ways = [way for way in _in_order(figures.ways(MEMORY)) if way not in (DIRECT, FLOOR)]
    if not ways:
        return "Not measured."
    naive = {case: Reference(setting, case, NAIVE) for setting, case in ((START, PORT_OPEN), (MEMORY, IDLE))}
    rows = [
        ["start to an open port / naive", *_across(figures, START, PORT_OPEN, ways, naive[PORT_OPEN])],
        ["idle memory / naive", *_across(figures, MEMORY, IDLE, ways, naive[IDLE])],
        ["peak memory per 8 MB call in flight / bytes on the wire", *_across(figures, MEMORY, PER_CALL, ways, None)],
        ["memory per upstream / idle memory", *_across(figures, MEMORY, PER_UPSTREAM, ways, None)],
    ]
    first = figures.ratio(Reference(START, FIRST_ANSWER, FIRST_ANSWER), Reference(START, FIRST_ANSWER, IMPORTING))
    return table(["", *ways], rows) + f"\n\nFirst answer over stdio / importing the SDK: {cell(first)}."


def _across(figures: Figures, setting: str, case: str, ways: Iterable[str], under: Reference | None) -> list[str]:
    return [cell(figures.ratio(Reference(setting, case, way), under)) for way in ways]


def _loop(figures: Figures) -> str:
    """How long the loop was away."""
    ways = [PASSTHROUGH, "claude-code"]
    cases = (LOOP_BLOCKED, LOOP_COMPUTING, LOOP_AWAY)
    rows = [[case, *_across(figures, LOOP, case, ways, None)] for case in cases]
    return table(["", *ways], rows)


def bars(
    figures: Figures, setting: str, ways: Sequence[str] = (PASSTHROUGH, "claude-code", CONNECTED, FLOOR)
) -> dict[str, dict[str, Ratio]]:
    """What the plot shows: for each case, each way beside the naive gateway."""
    found: dict[str, dict[str, Ratio]] = {}
    for case in figures.cases(setting):
        for way in ways:
            if ratio := beside_naive(figures, setting, case, way):
                found.setdefault(case, {})[way] = ratio
    return found

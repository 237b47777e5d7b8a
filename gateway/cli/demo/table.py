"""The demo's table on the terminal: a row for each case, a column for each host, both sides in each cell."""

from collections.abc import Iterator, Mapping
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.cli.demo.outcome import Cell, Outcome
from gateway.cli.demo.token_costs import costs_of_all
from gateway.hosts.simulators.side import Side, Tone, summary

STYLES: dict[Tone, str] = {"good": "green", "kept": "cyan", "poor": "yellow", "bad": "bold red"}
WIDTH = 200
"""Width if stdout is not a terminal: enough for every column of the demo."""
_FIRST = 16
_LEAST = 9
_BETWEEN = 3
"""Widths in characters: the first column, the minimum of a host's column, and the space between columns."""


def print_table(outcome: Outcome, console: Console | None = None) -> None:
    """Print the table, split into parts if its hosts do not fit beside each other, and the number of good cells."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    for widths in _parts(outcome, console.width):
        console.print(_table(outcome, widths))
    legend = (
        "in each cell: directly, then → through the gateway; named, kept: the model gets a line with a handle for it"
    )
    console.print(Text(legend, style="dim"))
    console.print(f"directly:            {count_lossless(outcome, 'direct')}")
    verdict = Text(f"through the gateway: {count_lossless(outcome, 'through')}")
    verdict.stylize("bold green" if outcome.is_good else "bold red")
    console.print(verdict)


def print_costs(outcome: Outcome) -> None:
    """Print what all results together cost each host's models."""
    console = Console(highlight=False, soft_wrap=True)
    costs = [cost for cost in costs_of_all(outcome) if cost.results]
    if costs:
        console.print("tokens of the results that reach the model on both sides, directly → through the gateway:")
    for cost in costs:
        console.print(f"  {cost.host.title}, {cost.model}: {cost.direct:,} → {cost.through:,}", markup=False)


def count_lossless(outcome: Outcome, side: Literal["direct", "through"]) -> str:
    """Say how many results lose nothing, and of how many the model sees everything."""
    total = len(outcome.cells)
    return f"{outcome.count(side):>3} of {total} shown or kept, {outcome.count_seen(side)} seen"


def _table(outcome: Outcome, widths: Mapping[int, int]) -> Table:
    table = Table(box=SIMPLE_HEAD, show_lines=True, pad_edge=False, title_justify="left")
    table.add_column("what the model gets", width=_FIRST)
    for place, width in widths.items():
        table.add_column(outcome.hosts[place].title, width=width)
    for case in outcome.cases:
        row = outcome.row(case)
        table.add_row(Text(case.name), *(_cell(row[place]) for place in widths))
    return table


def _parts(outcome: Outcome, width: int) -> Iterator[dict[int, int]]:
    """Split the hosts into parts that fit beside each other, with the widths of their columns."""
    part: dict[int, int] = {}
    left = room = width - _FIRST - _BETWEEN
    for place in range(len(outcome.hosts)):
        wanted = min(_width(outcome, place), room - _BETWEEN)
        if part and wanted + _BETWEEN > left:
            yield part
            part, left = {}, room
        part[place] = wanted
        left -= wanted + _BETWEEN
    yield part


def _width(outcome: Outcome, place: int) -> int:
    """Return the width of a host's cells; its title is wrapped between words."""
    cells = (str(_cell(outcome.row(case)[place])) for case in outcome.cases)
    lines = [*outcome.hosts[place].title.split(), *(line for cell in cells for line in cell.splitlines())]
    return max(_LEAST, *map(len, lines))


def _cell(cell: Cell) -> Text:
    return Text("\n").join([_words(cell.direct, ""), _words(cell.through, "→ ")])


def _words(side: Side, before: str) -> Text:
    words, tone = summary(side)
    return Text(before + words, style=STYLES[tone])

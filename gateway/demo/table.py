"""The demo's table on the terminal: a row for each case, a column for each host, directly above through the gateway."""

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gateway.demo.outcome import Cell, Outcome, Side, Tone, summary

STYLES: dict[Tone, str] = {"good": "green", "poor": "yellow", "bad": "bold red"}
WIDTH = 150
"""Where stdout is no terminal: wide enough for every column."""


def print_table(outcome: Outcome, console: Console | None = None) -> None:
    """Print the table, and below it how many cells are good."""
    console = console or Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    table = Table(box=SIMPLE_HEAD, show_lines=True, pad_edge=False, title_justify="left")
    table.add_column("what the model gets", min_width=16)
    for host in outcome.hosts:
        table.add_column(host.title, min_width=9)
    for case in outcome.cases:
        table.add_row(Text(case.name), *(_cell(cell) for cell in outcome.row(case)))
    console.print(table)
    console.print(Text("in each cell: directly, then → through the gateway", style="dim"))
    total = len(outcome.cells)
    console.print(f"directly:            {outcome.count('direct'):>3} of {total} results arrive as they should")
    verdict = Text(f"through the gateway: {outcome.count('through'):>3} of {total}")
    verdict.stylize("bold green" if outcome.is_good else "bold red")
    console.print(verdict)


def _cell(cell: Cell) -> Text:
    return Text("\n").join([_words(cell.direct, ""), _words(cell.through, "→ ")])


def _words(side: Side, before: str) -> Text:
    words, tone = summary(side)
    return Text(before + words, style=STYLES[tone])

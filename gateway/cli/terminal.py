"""Terminal output: sanitized text, tables and JSON."""

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import typer

from gateway.core.fact_words import plain
from gateway.telemetry.sanitize import neutral
from gateway.telemetry.wrap_lines import wrapped


def say(text: str = "") -> None:
    """Print sanitized lines to stdout, in one write: other threads print too."""
    print(f"{neutral(text)}\n", end="")


def remark(text: str) -> None:
    """Print a sanitized line to stderr, for people, beside a program's output and after what it has so far."""
    write_out()
    print(f"{wrapped(neutral(text), sys.stderr)}\n", end="", file=sys.stderr)


def write_out() -> None:
    """Write out what was printed on stdout so far: it may share a file or pipe with stderr, which is not buffered."""
    if sys.stdout is not None:
        # Whoever writes last, `gateway.cli.exit_codes.ending`, finds out that nobody reads it.
        with suppress(OSError, ValueError):
            sys.stdout.flush()


def help_without_command(context: typer.Context) -> None:
    """Print a group's help if no command was named, and treat that as a request, not an error, like gh and docker."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def say_json(value: Any) -> None:
    """Print a value as JSON. ASCII only, so that it is safe and readable everywhere."""
    print(json.dumps(value, indent=2))


_LEAST_FOLDED = 12
"""Characters of a line that are left for a folded column: beside long names, a table is wider than the terminal."""


def say_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, unfolded: int = 1) -> None:
    """Print a table, folded to the width of a terminal; if stdout is not a terminal, with one line per row.

    The first `unfolded` columns keep each cell in one line.
    """
    cells = [[neutral(plain(cell, 4_000)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(headings, cells, unfolded)
        return
    widths = [max(len(row[column]) for row in [headings, *cells]) for column in range(len(headings))]
    for row in [headings, *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _draw(headings: Sequence[str], cells: Sequence[Sequence[str]], unfolded: int) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=place < unfolded)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(markup=False, highlight=False, emoji=False)
    whole = [max(cell_len(row[place]) for row in [headings, *cells]) + 1 for place in range(unfolded)]
    folded = len(headings) - unfolded
    console.width = max(console.width, sum(whole) + folded * _LEAST_FOLDED)
    console.print(table)


def forgive_encodings() -> None:
    """Make characters that the terminal cannot encode be escaped, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

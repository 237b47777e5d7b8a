"""`mcp-gateway doctor`: find problems, and name the command or the edit that fixes each."""

import os
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.command_context import AsJson, ConfigFile, run_until_signal
from gateway.cli.completion import profile_names
from gateway.cli.diagnosis.findings import CheckResult, Diagnosis, Level
from gateway.cli.exit_codes import DONE, FAILED, UNUSABLE
from gateway.cli.progress import Wait
from gateway.cli.terminal import neutral, say_json
from gateway.core.fact_words import counted

if TYPE_CHECKING:
    from rich.table import Table

_STYLES: dict[Level, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
_WIDTH = 10


def doctor(
    config: ConfigFile = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="NAME",
            autocompletion=profile_names,
            help="Judge tools for this host; 'all' for every known host. Default: those here.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Examine the configuration, environment, upstreams and hosts; say what is wrong and how to fix it.

    Every upstream is started, and given its own time limit to become ready. Ctrl-C skips the rest of the wait.

    Exit codes: 0 nothing is wrong (warnings allowed), 1 there are problems, 2 the configuration cannot be used.
    """
    # Imported here, so that other commands do not load modules that only `doctor` needs.
    from gateway.cli.diagnosis.doctor import CHECKS, diagnose

    wait = Wait(visible=not as_json, ctrl_c="go on without them")
    ended = run_until_signal(
        lambda: diagnose(config, os.environ, host=host, checks=CHECKS, shown=wait.shown), interrupt=wait.interrupt
    )
    if isinstance(ended, int):
        return ended
    if as_json:
        say_json(ended.to_json())
    else:
        _say(ended)
    return UNUSABLE if not ended.usable else FAILED if ended.count("problem") else DONE


def _say(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, highlight=False, emoji=False)
    for about, findings in groupby(diagnosis.findings, key=lambda finding: finding.about):
        console.print(Text(neutral(about), style="bold"))
        lines = [line for finding in findings for line in _lines(finding)]
        if sys.stdout.isatty():
            console.print(_grid(lines))
        else:  # one finding per line, for searching
            for heading, words, _ in lines:
                print(f"  {heading:<{_WIDTH}}{words}".rstrip())
    problems, warnings = diagnosis.count("problem"), diagnosis.count("warning")
    style: Level = "problem" if problems else "warning" if warnings else "ok"
    console.print()
    console.print(Text(f"{counted(problems, 'problem')}, {counted(warnings, 'warning')}", style=_STYLES[style]))


def _grid(lines: "Iterable[_Line]") -> "Table":
    """Return a grid of the lines, each folded beside its heading."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    grid.add_column(min_width=_WIDTH + 1, no_wrap=True)
    grid.add_column(overflow="fold")
    for heading, words, style in lines:
        grid.add_row(Text(f"  {heading}", style=style), Text(words, style="" if heading else style))
    return grid


_Line = tuple[str, str, str]


def _lines(finding: CheckResult) -> Iterator[_Line]:
    """Heading, words and style: the finding, and below it what the program said, and the remedy."""
    hosts = f" (for {', '.join(finding.hosts)})" if finding.hosts else ""
    yield finding.level, _harmless(finding.text + hosts), _STYLES[finding.level]
    for line in finding.stderr:
        yield "", _harmless(f"stderr: {line}"), "dim"
    if finding.advice:
        yield "", _harmless(f"-> {finding.advice}"), "dim"


def _harmless(text: str) -> str:
    return neutral(" ".join(text.split()))

"""The outcome of a check of a server, printed: `mcp-gateway check`, and `add` from the registry."""

import json
from typing import TYPE_CHECKING

from gateway.cli.print_result import grouped
from gateway.cli.terminal import say
from gateway.core.apps import FOR_THE_PAGE_ALONE
from gateway.core.fact_words import counted, plain

if TYPE_CHECKING:
    from gateway.cli.demo.cases import Case
    from gateway.cli.diagnosis.checkup import Checkup
    from gateway.cli.diagnosis.page_check import CheckedPage


def print_checkup(checkup: "Checkup") -> None:
    """Print what the models of the hosts see of each call, and what to change."""
    from gateway.cli.demo.table import print_table

    if checkup.outcome.cells:
        print_table(checkup.outcome)
    for case in (*checkup.outcome.cases, *checkup.for_pages, *checkup.refused):
        say()
        _say_case(checkup, case)
    for name, some in checkup.on_tools.items():
        say()
        say(f"{name}: not called")
        for advice in some:
            say(f"  change   {advice}")
    for page in checkup.pages:
        say()
        _say_page(page)
    if checkup.skipped:
        say()
        say("not called:")
        for one in checkup.skipped:
            say(f"  {one.tool}: {one.why}")
        if checkup.command_for_all is not None and any(one.all_calls_it for one in checkup.skipped):
            say(f"to call them as well: {checkup.command_for_all}")
    if checkup.refused:
        say()
        say("made-up arguments failed; give real ones with --arguments FILE, which may hold, with your values:")
        say(f"  {json.dumps({case.tool: dict(case.arguments) for case in checkup.refused}, ensure_ascii=False)}")
    say()
    say(_summary(checkup))


def _say_case(checkup: "Checkup", case: "Case") -> None:
    say(f"{case.name}: {case.shows}")
    if case.name in checkup.failed:
        say(f"  failed   {checkup.failed[case.name]}")
    elif case in checkup.for_pages:
        say("  only pages read this: they get it as it came")
    if any(cell.direct.seen for cell in checkup.outcome.row(case)):
        _say_sides(checkup, case.name)
    if case.name in checkup.with_data and checkup.replacing:
        words = "with a page, the model reads structured content in place of the text"
        say(f"  pages    {', '.join(checkup.replacing)}: {words}")
    if (pictures := checkup.pictures.get(case.name)) and checkup.hiding:
        lost = "the picture is" if pictures == 1 else f"the {pictures} pictures are"
        words = f"with a page, structured content replaces all other content, so {lost} lost to the model"
        say(f"  change   in {', '.join(checkup.hiding)}: {words}; {FOR_THE_PAGE_ALONE}")
    if (size := checkup.heavy.get(case.name)) and checkup.reading:
        words = f"the page's data goes to the model whole, {size.words()}: {FOR_THE_PAGE_ALONE}"
        say(f"  change   in {', '.join(checkup.reading)}: {words}")
    for advice in checkup.advice.get(case.name, ()):
        say(f"  change   {advice}")


def _say_page(page: "CheckedPage") -> None:
    say(f"{plain(page.uri)}: the page of {plain(', '.join(page.tools), 200)}")
    for hosts, words in grouped(page.words()):
        say(f"  in {', '.join(hosts)}: {words}")
    if page.losing and page.data_of:
        say(f"  in {', '.join(page.losing)}: {page.loss}")
    for fault in page.faults:
        say(f"  change   {plain(fault)}")


def _say_sides(checkup: "Checkup", name: str) -> None:
    """Print the problems and their hosts, directly and through the gateway."""
    for heading, which in (("directly", "direct"), ("through", "through")):
        problems: dict[str, list[str]] = {}
        for cell in checkup.outcome.cells:
            if cell.case.name == name:
                for problem in getattr(cell, which).problems_in_short:
                    problems.setdefault(problem, []).append(cell.host.name)
        for problem, hosts in problems.items():
            say(f"  {heading:<8} {', '.join(hosts)}: {problem}")
        if not problems:
            row = [getattr(cell, which) for cell in checkup.outcome.cells if cell.case.name == name]
            seen = sum(side.is_seen for side in row)
            say(f"  {heading:<8} shown or kept everywhere, seen by the models of {seen} of {len(row)} hosts")


def _all(checkup: "Checkup") -> str:
    return "--all" if checkup.command_for_all is None else f"`{checkup.command_for_all}`"


def _summary(checkup: "Checkup") -> str:
    calls = len(checkup.outcome.cases) + len(checkup.for_pages) + len(checkup.refused)
    if not calls:
        pages, things = counted(len(checkup.pages), "page"), counted(checkup.advised, "thing")
        known = f"{pages}; {things} to change" if checkup.pages else "nothing is known"
        return f"{known}; no tool was called: list tools in --arguments FILE, or use {_all(checkup)}"
    failed = f", {len(checkup.failed)} failed (exit code 1)" if checkup.failed else ""
    outcome, advised = checkup.outcome, counted(checkup.advised, "thing")
    shown = f"{outcome.count('through')} of {len(outcome.cells)} shown or kept, {outcome.count_seen('through')} seen"
    of = " of the other results" if checkup.refused else ""
    through = f"; through the gateway {shown}{of}" if outcome.cells else ""
    pages = f"; {counted(len(checkup.pages), 'page')}" if checkup.pages else ""
    return f"{counted(calls, 'call')}{failed}{through}{pages}; {advised} to change"

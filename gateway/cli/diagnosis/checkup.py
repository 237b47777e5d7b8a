"""What a server is checked for, and what was found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.cli.demo.cases import Case
from gateway.cli.demo.outcome import Outcome
from gateway.cli.diagnosis.page_check import CheckedPage
from gateway.cli.diagnosis.selection import Arguments, Skipped
from gateway.core.apps import TextSize
from gateway.hosts.simulators.host import SimulatedHost
from gateway.testing.advice import Advice


@dataclass(frozen=True)
class CheckOptions:
    """The scope of a check: `given` arguments, `everything` to call tools not known to be harmless too, `only` these
    tools (globs), these `hosts` (empty: the first that have a model), a limit of `seconds` for each call, and whether
    the `pages` of tools are read. `command_for_all` is the command line that calls all tools, if its words matter."""

    given: Arguments = field(default_factory=dict[str, Sequence[Mapping[str, Any]]])
    everything: bool = False
    only: tuple[str, ...] = ()
    hosts: tuple[SimulatedHost, ...] = ()
    seconds: float = 60.0
    pages: bool = True
    command_for_all: str | None = None


@dataclass(frozen=True)
class Checkup:
    """The results of a check. `outcome` has a case for every call whose result a model reads, `for_pages` has the cases
    of the other calls; `advice` and `failed` are keyed by the case's name.

    `on_tools` is advice on tools that were not called. `failed` has the reasons: errors of the tool or of the protocol.
    `refused` are the cases of calls that failed with arguments that were made up: what hosts show of that says nothing
    about the tool. `pages` are the pages of all tools that have one, called or not. `with_data` are the names of the
    cases of tools with a page that returned structured content, which the models of the hosts in `replacing` read in
    place of the text. `pictures` has the number of pictures beside it, by case, which the models of the hosts in
    `hiding` do not see then. `heavy` has the sizes of what is too much for the models of the hosts in `reading`, by
    case. `command_for_all` is that of the options.
    """

    server: str
    outcome: Outcome
    advice: Mapping[str, Sequence[Advice]]
    on_tools: Mapping[str, Sequence[Advice]]
    failed: Mapping[str, str]
    skipped: Sequence[Skipped]
    pages: Sequence[CheckedPage] = ()
    for_pages: Sequence[Case] = ()
    refused: Sequence[Case] = ()
    with_data: frozenset[str] = frozenset()
    replacing: Sequence[str] = ()
    pictures: Mapping[str, int] = field(default_factory=dict[str, int])
    hiding: Sequence[str] = ()
    heavy: Mapping[str, TextSize] = field(default_factory=dict[str, TextSize])
    reading: Sequence[str] = ()
    command_for_all: str | None = None

    @property
    def is_good(self) -> bool:
        """Whether all is well, and anything is known: something was called, or a page was read.

        No call failed, through the gateway every host's model sees it all, and every page can be read.
        """
        shown = self.outcome.is_good if self.outcome.cells else bool(self.for_pages or self.pages)
        return shown and not self.failed and all(page.is_good for page in self.pages)

    @property
    def advised(self) -> int:
        """The number of pieces of advice."""
        of_pages = (*(page.faults for page in self.pages), self.heavy, self.pictures if self.hiding else ())
        advice = (*self.advice.values(), *self.on_tools.values(), *of_pages)
        return sum(map(len, advice))

    def to_json(self) -> dict[str, Any]:
        """Return the results as JSON."""
        return {
            **self.outcome.to_json(),
            "good": self.is_good,
            "server": self.server,
            "failed": dict(self.failed),
            "advice": {
                tool: [one.to_json() for one in some] for tool, some in {**self.advice, **self.on_tools}.items() if some
            },
            "skipped": [{"tool": one.tool, "why": one.why} for one in self.skipped],
            "pages": [page.to_json() for page in self.pages],
            "structured_content": {
                "tools": sorted(self.with_data),
                "replaces_text_in": list(self.replacing),
                "hides_pictures": dict(self.pictures),
                "hides_pictures_in": list(self.hiding),
                "too_large_for_models": {name: size.chars for name, size in self.heavy.items()},
                "read_in": list(self.reading),
            },
            "for_pages": [{"tool": case.tool, "result": case.shows} for case in self.for_pages],
            "made_up": {case.tool: dict(case.arguments) for case in self.refused},
        }

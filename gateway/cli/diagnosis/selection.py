"""Which tools of a server are called, with which arguments, and which are not, and why. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from gateway.cli.diagnosis.examples import NoExample, example_arguments
from gateway.core.apps import for_the_model
from gateway.core.model.json_values import is_list, is_object
from gateway.core.tools.catalogue.repair import shown_name, unusable
from gateway.core.wording import plain
from gateway.errors import ConfigError

Arguments = Mapping[str, Sequence[Mapping[str, Any]]]
"""By tool, the arguments of each call of it that was asked for."""

_NAME = 80
_LIST = "list it in --arguments"


@dataclass(frozen=True)
class PlannedCall:
    """One call to make: of which tool, with which arguments, and whether those were made up here."""

    tool: Mapping[str, Any]
    arguments: Mapping[str, Any]
    made_up: bool
    number: int = 1

    @property
    def tool_name(self) -> str:
        """The tool's own name."""
        return str(self.tool["name"])

    @property
    def title(self) -> str:
        """The tool's name for people; further calls of it are numbered."""
        shown = plain(self.tool_name, _NAME)
        return shown if self.number == 1 else f"{shown} ({self.number})"


@dataclass(frozen=True)
class Skipped:
    """A tool that is not called: its name for people, and why, with what has it called."""

    tool: str
    why: str


def read_arguments(document: Any, where: str) -> Arguments:
    """The arguments in a file: an object from tool to its arguments, or to a list of those of several calls.

    Raises:
        ConfigError: it is something else.
    """
    problem = ConfigError(
        "is not an object of tools",
        where=where,
        remedy='write it as {"tool": {"argument": "value"}}, or in TOML [tool]',
    )
    if not is_object(document):
        raise problem
    given: dict[str, Sequence[Mapping[str, Any]]] = {}
    for tool, value in document.items():
        calls = value if is_list(value) else [value]
        if not all(is_object(call) for call in calls):
            raise problem
        given[tool] = [dict(call) for call in calls]
    return given


def select(
    tools: Sequence[Any],
    callable_names: Collection[str],
    given: Arguments,
    *,
    everything: bool,
    only: Sequence[str] = (),
) -> tuple[list[PlannedCall], list[Skipped]]:
    """What to call, and what not. A tool is called when it is listed in `given`, or says that it only reads.

    `everything` calls the others too. `only` are shell globs: tools that match none of them are not mentioned.
    `callable_names` are those that the gateway offers.

    Raises:
        ConfigError: `given` or `only` names a tool that there is not.
    """
    names = [str(tool["name"]) for tool in tools if unusable(tool) is None]
    _check_names(names, given, only)
    calls: list[PlannedCall] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    for place, tool in enumerate(tools, 1):
        reason = unusable(tool)
        if reason is not None:
            skipped.append(Skipped(shown_name(tool, place), f"the gateway withholds it: {reason}"))
            continue
        name = str(tool["name"])
        if not matches(name, only):
            continue
        if name in seen or name not in callable_names:
            why = "the gateway withholds it: another tool has its name" if name in seen else "it is not offered"
            skipped.append(Skipped(plain(name, _NAME), why))
            continue
        seen.add(name)
        if name in given:
            calls.extend(PlannedCall(tool, one, False, number) for number, one in enumerate(given[name], 1))
        elif not for_the_model(tool):
            skipped.append(Skipped(plain(name, _NAME), f"only pages call it (MCP Apps), no model: {_LIST}"))
        elif (why := None if everything else _dangerous(tool)) is not None:
            skipped.append(Skipped(plain(name, _NAME), why))
        else:
            try:
                calls.append(PlannedCall(tool, example_arguments(tool["inputSchema"]), True))
            except NoExample as error:
                skipped.append(
                    Skipped(plain(name, _NAME), f"no arguments could be made up ({plain(str(error), 200)}): {_LIST}")
                )
    return calls, skipped


def matches(name: str, only: Sequence[str]) -> bool:
    """Whether a tool is one of `only`, which are shell globs; where there are none, every tool is."""
    return not only or any(fnmatchcase(name, pattern) for pattern in only)


def _dangerous(tool: Mapping[str, Any]) -> str | None:
    """Why a tool is not called unasked; None for one that says that it only reads."""
    hints: Any = tool.get("annotations")
    known = hints if is_object(hints) else dict[str, Any]()
    if known.get("destructiveHint") is True:
        return f"it declares destructiveHint: {_LIST}, or use --all"
    if known.get("readOnlyHint") is not True:
        return f"it does not declare readOnlyHint: {_LIST}, or use --all"
    return None


def _check_names(names: Sequence[str], given: Iterable[str], only: Iterable[str]) -> None:
    for where, wanted in (("--arguments", given), ("--tool", only)):
        for name in wanted:
            if name in names or (where == "--tool" and any(fnmatchcase(one, name) for one in names)):
                continue
            near = get_close_matches(name, names, n=1)
            remedy = (
                f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(plain(one, _NAME) for one in names)}"
            )
            raise ConfigError(f"the server has no tool {plain(name, _NAME)!r}", where=where, remedy=remedy)

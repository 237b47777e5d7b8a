"""Select the calls of a check: which tools are called, with which arguments, and why others are skipped. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from gateway.cli.diagnosis.examples import NoExample, example_arguments
from gateway.core.apps import for_the_model
from gateway.core.fact_words import plain
from gateway.core.model.json_values import is_list, is_object
from gateway.core.near_names import which_name
from gateway.core.tools.catalogue.repair import shown_name, unusable
from gateway.errors import ConfigError

Arguments = Mapping[str, Sequence[Mapping[str, Any]]]
"""The arguments of each requested call, by tool."""

_NAME = 80
_LIST = "list it in --arguments"


@dataclass(frozen=True)
class PlannedCall:
    """One call to make: the tool, the arguments, and whether the arguments were made up."""

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
        """The tool's name for display; further calls of the same tool are numbered."""
        shown = plain(self.tool_name, _NAME)
        return shown if self.number == 1 else f"{shown} ({self.number})"


@dataclass(frozen=True)
class Skipped:
    """A tool that is not called: its name for display, and the reason, with the option that would call it."""

    tool: str
    why: str
    all_calls_it: bool = False
    """Whether `--all` is that option."""


def read_arguments(document: Any, where: str) -> Arguments:
    """Return the arguments in a file: an object from tool names to arguments, or to lists of them for several calls.

    Raises:
        ConfigError: the document has another form.
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
    """Return the calls to make, and the tools to skip. A tool is called if it is in `given` or declares `readOnlyHint`.

    With `everything`, all others are called too. `only` are shell globs: tools that match none of them are not
    mentioned. `callable_names` are the tools that the gateway offers.

    Raises:
        ConfigError: `given` or `only` names a tool that does not exist.
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
            skipped.append(Skipped(plain(name, _NAME), why, all_calls_it=True))
        else:
            try:
                calls.append(PlannedCall(tool, example_arguments(tool["inputSchema"]), True))
            except NoExample as error:
                skipped.append(
                    Skipped(plain(name, _NAME), f"no arguments could be made up ({plain(str(error), 200)}): {_LIST}")
                )
    return calls, skipped


def matches(name: str, only: Sequence[str]) -> bool:
    """Whether a tool matches one of the shell globs in `only`, or `only` is empty."""
    return not only or any(fnmatchcase(name, pattern) for pattern in only)


def _dangerous(tool: Mapping[str, Any]) -> str | None:
    """Return why a tool is not called unless requested; None for a tool that declares `readOnlyHint`."""
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
            remedy = which_name(name, [plain(one, _NAME) for one in names])
            raise ConfigError(f"the server has no tool {plain(name, _NAME)!r}", where=where, remedy=remedy)

"""Which of a gateway's tools a toolset has, and under which names its model knows them. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from gateway.agents.source import Offer, Offered
from gateway.core.tools.catalogue.names import NameRules, Names
from gateway.core.wording import plain
from gateway.errors import ConfigError, ToolNotAllowed, ToolNotOffered, ToolOfferedTwice, UnknownTool


@dataclass(frozen=True)
class Chosen:
    """The tools of a toolset by the names that the model knows, and the names of those that it may not call."""

    tools: Mapping[str, Offered]
    others: Collection[str] = ()

    def described(self) -> list[dict[str, Any]]:
        """The tools as tools/list describes them, under the names for the model."""
        return [{**offered.tool, "name": name} for name, offered in self.tools.items()]

    def find(self, name: str) -> Offered:
        """The tool that a model calls by this name.

        Raises:
            ToolNotAllowed: there is one, and it is none of this toolset.
            UnknownTool: there is none.
        """
        found = self.tools.get(name)
        if found is not None:
            return found
        shown = plain(name, 100)
        if name in self.others:
            raise ToolNotAllowed(f"the tool {shown!r} is not allowed", remedy="call one of those that you were given")
        near = get_close_matches(shown, list(self.tools)[:500], n=3)
        hint = f"; the nearest: {', '.join(map(repr, near))}" if near else ""
        raise UnknownTool(f"no tool is named {shown!r}{hint}", remedy="call one of those that you were given")


def choose_tools(
    offer: Offer, providers: Collection[str] | None, allow: Collection[str] | None, rules: NameRules, who: str
) -> Chosen:
    """The tools of `providers` that are allowed. `allow` holds names as offered, or as the upstreams call them.

    A name does not depend on what else is allowed. `who` begins every message.

    Raises:
        ConfigError: a provider does not exist.
        ToolNotOffered: an allowed tool is offered by none of the providers.
        ToolOfferedTwice: an allowed name stands for several tools, or the gateway lists two tools of one name.
    """
    unknown = [name for name in providers or () if name not in offer.providers]
    if unknown:
        known = ", ".join(offer.providers) or "none"
        raise ConfigError(f"{who}no provider is called {_listed(unknown)}", remedy=f"there are: {known}")
    names = Names(rules)
    named = {names.give((tool.name,), tool.name).name: tool for tool in offer.tools}
    twice = _repeated([tool.name for tool in offer.tools])
    if twice:
        raise ToolOfferedTwice(f"{who}the gateway lists {_listed(twice)} more than once")
    mine = {name: tool for name, tool in named.items() if providers is None or tool.provider in providers}
    wanted = None if allow is None else _allowed(list(mine.values()), allow, offer.absent, who)
    tools = {name: tool for name, tool in mine.items() if wanted is None or tool.name in wanted}
    return Chosen(tools, frozenset(named) - frozenset(tools))


def _allowed(tools: Sequence[Offered], allow: Collection[str], absent: Sequence[str], who: str) -> set[str]:
    """The offered names of the tools that are allowed."""
    found: set[str] = set()
    missing: list[str] = []
    for wanted in allow:
        matches = [tool for tool in tools if tool.name == wanted] or [tool for tool in tools if tool.own_name == wanted]
        if len(matches) > 1:
            raise ToolOfferedTwice(
                f"{who}{wanted!r} is offered by {', '.join(tool.provider for tool in matches)}",
                remedy=f"allow one of {', '.join(tool.name for tool in matches)}, or name the provider",
            )
        found.update(tool.name for tool in matches)
        if not matches:
            missing.append(wanted)
    if missing:
        near = get_close_matches(missing[0], [tool.name for tool in tools][:500], n=3)
        hint = f"; the nearest: {', '.join(map(repr, near))}" if near else ""
        why = f"; not there now: {', '.join(absent)}" if absent else ""
        raise ToolNotOffered(f"{who}allowed, and offered by no provider: {_listed(missing)}{hint}{why}")
    return found


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(plain(name, 100)) for name in names)

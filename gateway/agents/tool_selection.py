"""Select a toolset's tools from those of a gateway, and the names by which its model knows them. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.agents.source import Offer, Offered
from gateway.core.fact_words import plain
from gateway.core.near_names import nearest_words, which_name
from gateway.core.tools.catalogue.names import NameRules, Names
from gateway.errors import ConfigError, ToolNotAllowed, ToolNotOffered, ToolOfferedTwice, UnknownTool


@dataclass(frozen=True)
class Chosen:
    """The tools of a toolset by their names for the model, and the names of tools that the model may not call."""

    tools: Mapping[str, Offered]
    others: Collection[str] = ()

    def described(self) -> list[dict[str, Any]]:
        """The tools as described by tools/list, under their names for the model."""
        return [{**offered.tool, "name": name} for name, offered in self.tools.items()]

    def find(self, name: str) -> Offered:
        """Return the tool that a model calls by this name.

        Raises:
            ToolNotAllowed: the tool exists, but is not in this toolset.
            UnknownTool: there is no such tool.
        """
        found = self.tools.get(name)
        if found is not None:
            return found
        shown = plain(name, 100)
        if name in self.others:
            raise ToolNotAllowed(f"the tool {shown!r} is not allowed", remedy="call one of those that you were given")
        hint = nearest_words(shown, self.tools)
        raise UnknownTool(f"there is no tool named {shown!r}{hint}", remedy="call one of those that you were given")


def choose_tools(
    offer: Offer, providers: Collection[str] | None, allow: Collection[str] | None, rules: NameRules, who: str
) -> Chosen:
    """Choose the allowed tools of `providers`. `allow` has names as offered, or the upstreams' own names.

    A name does not depend on what else is allowed. `who` begins every message.

    Raises:
        ConfigError: a provider does not exist.
        ToolNotOffered: none of the providers offers an allowed tool.
        ToolOfferedTwice: an allowed name matches several tools, or the gateway lists two tools of the same name.
    """
    unknown = [name for name in providers or () if name not in offer.providers]
    if unknown:
        remedy = which_name(unknown[0], offer.providers)
        raise ConfigError(f"{who}no provider is called {_listed(unknown)}", remedy=remedy)
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
    """Return the offered names of the allowed tools."""
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
        hint = nearest_words(missing[0], [tool.name for tool in tools])
        why = f"; not there now: {', '.join(absent)}" if absent else ""
        raise ToolNotOffered(f"{who}allowed, and offered by no provider: {_listed(missing)}{hint}{why}")
    return found


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(plain(name, 100)) for name in names)

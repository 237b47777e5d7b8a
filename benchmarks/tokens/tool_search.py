"""How often tool search finds the right tool, and the tokens of a host's list before and after.

The tools and the queries are those of `tools.json`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from gateway.config.builtin_profiles import builtin_profiles
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.config.upstream_settings import ToolsSettings
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import list_tokens
from gateway.core.tokens.estimate_text import text_tokens
from gateway.core.tools.catalogue import OWN, Catalogue, build
from gateway.routing.tool_search import SEARCH_TOOLS, ToolSearch

SET = Path(__file__).with_name("tools.json")
HOSTS = ("claude-desktop", "cursor", "vscode-copilot", "gemini-cli", "windsurf", "goose", "default")
LEAST = 0.85
"""The share of queries that must have their tool among the first five."""


class Figures(NamedTuple):
    """The figures for one host: tokens of its list before and after and of an answer, and shares of queries found."""

    title: str
    tools: int
    before: int
    after: int
    answer: int
    first: float
    five: float


def catalogue_for(profile: Profile, tools: Sequence[Mapping[str, Any]]) -> Catalogue:
    """Return the catalogue of a host, with all tools of the set and the two for searching."""
    lists: dict[str, list[Any]] = {OWN: list(SEARCH_TOOLS)}
    for each in tools:
        lists.setdefault(each["server"], []).append(each["tool"])
    unlimited = profile.model_copy(update={"tools": profile.tools.model_copy(update={"max_tools": None})})
    return build(lists, {name: ToolsSettings() for name in lists}, "always", unlimited, "gateway")


async def _figures(name: str, profile: Profile, given: Mapping[str, Any]) -> Figures:
    """Return the figures for a host."""
    catalogue = catalogue_for(narrow(profile, NEWEST_HANDSHAKE), given["tools"])
    search = ToolSearch(ToolSearchSettings(mode="always"))
    names = {f"{route.upstream}__{route.tool}": offered for offered, route in catalogue.routes.items()}
    places, answers = list[int](), list[int]()
    for query in given["queries"]:
        found, _ = search.by_words(catalogue, query["query"], 50)
        wanted = names[query["tool"]]
        places.append(found.index(wanted) if wanted in found else 50)
        result = await search.find({"query": query["query"]}, catalogue)
        answers.append(text_tokens(result["content"][0]["text"]))
    upstreams = [tool for tool in catalogue.tools if catalogue.routes[tool["name"]].upstream != OWN]
    return Figures(
        profile.title or name,
        len(upstreams),
        list_tokens(upstreams),
        list_tokens(tool for tool in catalogue.tools if tool not in upstreams),
        round(mean(answers)),
        mean(place < 1 for place in places),
        mean(place < 5 for place in places),
    )


def table(rows: Sequence[Figures]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| host | tools | list before | list after | an answer | found first | among five |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for row in rows:
        saved = 1 - row.after / row.before
        yield (
            f"| {row.title} | {row.tools} | {row.before:,} | {row.after:,} (-{saved:.0%}) | {row.answer:,} "
            f"| {row.first:.0%} | {row.five:.0%} |"
        )


async def measure() -> list[Figures]:
    """Return the figures for all hosts."""
    given, profiles = json.loads(SET.read_text("utf-8")), builtin_profiles()
    return [await _figures(name, profiles[name], given) for name in HOSTS]


def finds_enough(rows: Sequence[Figures]) -> bool:
    """Return whether the right tool is among the first five for enough queries, for every host."""
    return all(row.five >= LEAST for row in rows)

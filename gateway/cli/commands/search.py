"""`mcp-gateway search`: find MCP servers in the registry."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gateway.cli.ask_registry import ask_registry, say_age
from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.exit_codes import DONE
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.core.fact_words import plain
from gateway.core.registry.entry import RegistryEntry
from gateway.core.registry.ways import ways_of

if TYPE_CHECKING:
    from gateway.registry.client import SearchResults


def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORDS...", help="All of them are in its name, title or description.")
    ],
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=1_000, help="Maximum number of servers.")
    ] = 30,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Find MCP servers in the registry; `mcp-gateway add NAME` adds one.

    Servers that their publishers have withdrawn are left out. If the registry does not answer, its last answer is used.
    """
    found = ask_registry(config, lambda client: client.search(words, limit))
    if isinstance(found, int):
        return found
    say_age(found.age)
    if as_json:
        say_json(results_as_json(found))
        return DONE
    if not found.entries:
        say("no server was found")
        return DONE
    rows = [
        (entry.name, plain(entry.version, 40), ", ".join(runs_with(entry)), plain(_about(entry), 200))
        for entry in found.entries
    ]
    say_table(("name", "version", "runs with", "about"), rows)
    if not found.is_complete:
        remark("there may be more: another word, or --limit, shows others")
    say("next: `mcp-gateway add NAME` shows how one is run, and adds it")
    return DONE


def runs_with(entry: RegistryEntry) -> Sequence[str]:
    """Return how a server can be run: `npx`, `uvx`, `docker` ...; what the gateway cannot run is in brackets."""
    ways = ways_of(entry)
    words = [way.runs_with if way.obstacle is None else f"({plain(way.runs_with, 20) or 'unknown'})" for way in ways]
    return list(dict.fromkeys(words)) or ["-"]


def results_as_json(found: "SearchResults") -> dict[str, Any]:
    """Return the results for programs."""
    return {
        "servers": [entry_as_json(entry) for entry in found.entries],
        "complete": found.is_complete,
        "age_seconds": found.age,
    }


def entry_as_json(entry: RegistryEntry) -> dict[str, Any]:
    """Return an entry for programs."""
    return {
        "name": entry.name,
        "version": entry.version,
        "title": entry.title,
        "description": entry.description,
        "status": entry.status,
        "repository": entry.repository,
        "runs_with": list(runs_with(entry)),
    }


def _about(entry: RegistryEntry) -> str:
    return f"{entry.title}: {entry.description}" if entry.title else entry.description

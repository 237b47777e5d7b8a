"""Servers of the registry in the console: found, shown with what they ask for, and added as `mcp-gateway add` does."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from anyio import from_thread, to_thread
from starlette.requests import Request

from gateway.config.secret_sources import has_keyring
from gateway.core.registry.entry import RegistryEntry, is_registry_name, split_reference
from gateway.core.registry.inputs import Question, defaults
from gateway.core.registry.risks import risks_of
from gateway.core.registry.ways import Way, ways_of
from gateway.errors import ConfigError, InvalidRequest
from gateway.hosts.config_files.starter_config import check_upstream
from gateway.hosts.config_files.upstream_edits import ConfigurationText
from gateway.registry.client import FoundEntry, RegistryClient
from gateway.registry.open_client import open_registry
from gateway.registry.plan_add import check_complete, hide_secrets, name_for_entry, read_answers, table_for
from gateway.serving.console.console import Console
from gateway.serving.console.submitted import Submitted
from gateway.serving.console.views import View

VALUE = "value."
"""The beginning of the names of fields that have the answers."""

_SHOWN = 50
_LONGEST = 600


class RegistryAddition(NamedTuple):
    """A configuration with a server of the registry, and the secrets that go into the keyring when it is written."""

    text: ConfigurationText
    in_keyring: Mapping[str, str]


def with_registry_server(console: Console, text: ConfigurationText, form: Submitted) -> RegistryAddition:
    """Return the configuration with the server that a form chooses, in a thread of the event loop's.

    The form has `server` (NAME@VERSION), `way` (the number of the way to run it), `name`, and its values, each as
    `value.NAME`.

    Raises:
        ConfigError: a value is missing or cannot be used, or nothing can be added to the text.
        InvalidRequest: there is no such server, or no such way.
        RegistryUnavailable: the registry does not answer.
    """
    if text.is_json:
        raise ConfigError("is a JSON file of another program", where=str(text.file), remedy="start with a .toml file")
    entry = from_thread.run(_entry, console, form.line("server")).entry
    way, name = _chosen(entry, form.line("way")), form.line("name")
    given = [(one.name, value) for one in way.questions for value in _given(form, one)]
    answers = read_answers(way, given)
    check_complete(way, answers)
    secrets = hide_secrets(way, answers, name, keyring=has_keyring())
    upstream = table_for(entry, way, secrets.answers)
    changed = text.with_upstream(name, upstream)
    check_upstream(name, upstream)
    return RegistryAddition(changed, secrets.in_keyring)


def _given(form: Submitted, question: Question) -> Sequence[str]:
    field = f"{VALUE}{question.name}"
    if question.is_repeated:
        return form.lines(field)
    return [form.line(field)] if form.line(field) or (form.all(field) and _is_cleared(question)) else []


def _is_cleared(question: Question) -> bool:
    """Whether an empty field leaves out a value: a page shows the default of a question, but not that of a secret."""
    return bool(question.default) and not question.is_secret


def _chosen(entry: RegistryEntry, number: str) -> Way:
    ways = ways_of(entry)
    place = int(number) if number.isascii() and number.isdecimal() and len(number) < 4 else 0
    if not 1 <= place <= len(ways):
        raise InvalidRequest("no way to run it is chosen", remedy="choose one")
    way = ways[place - 1]
    if way.obstacle is not None:
        raise InvalidRequest(f"this way cannot be used: {way.obstacle}", remedy="choose another one")
    return way


def _client(console: Console) -> RegistryClient:
    return open_registry(console.gateway.settings.registry)


async def _entry(console: Console, reference: str) -> FoundEntry:
    if not is_registry_name(reference):
        raise InvalidRequest("this is not the name of a server of the registry", remedy="io.github.acme/weather")
    return await _client(console).entry(*split_reference(reference))


async def _found(console: Console, request: Request) -> Mapping[str, Any]:
    """Return what is found for the `words` of the query: `servers`, `complete`, and `age` if it is an old answer."""
    client, words = _client(console), request.query_params.get("words", "").strip()
    if not words:
        return {"words": "", "registry": client.url, "servers": [], "complete": True, "age": None}
    found = await client.search([words], _SHOWN)
    servers = [_about(entry) for entry in found.entries]
    return {"words": words, "registry": client.url, "servers": servers, "complete": found.is_complete, "age": found.age}


def _about(entry: RegistryEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "version": entry.version,
        "title": entry.title[:_LONGEST],
        "description": entry.description[:_LONGEST],
        "status": entry.status,
        "status_words": entry.status_words[:_LONGEST],
        "repository": entry.repository[:_LONGEST],
        "runs_with": list(dict.fromkeys(way.runs_with for way in ways_of(entry) if way.obstacle is None)),
    }


async def _server(console: Console, request: Request) -> Mapping[str, Any]:
    """Return one server (`name` of the query, NAME or NAME@VERSION) with its `ways`, and what each asks for."""
    found = await _entry(console, request.query_params.get("name", ""))
    entry = found.entry
    config = console.operation.config
    return {
        **_about(entry),
        "reference": entry.reference,
        "age": found.age,
        "upstream": name_for_entry(entry.name, console.gateway.settings.upstreams),
        "ways": [_way(entry, way, number) for number, way in enumerate(ways_of(entry), 1)],
        "has_keyring": await to_thread.run_sync(has_keyring),
        "config": None if config is None else str(config),
    }


def _way(entry: RegistryEntry, way: Way, number: int) -> dict[str, Any]:
    shown = {one.name: (one.default or f"<{one.name}>",) for one in way.questions if one.is_required}
    upstream = table_for(entry, way, {**defaults(way.questions), **shown}) if way.obstacle is None else {}
    return {
        "number": number,
        "kind": way.kind[:_LONGEST],
        "origin": way.origin[:_LONGEST],
        "digest": way.digest and way.digest[:_LONGEST],
        "obstacle": way.obstacle,
        "runs": upstream.get("url") or shlex.join([upstream["command"], *upstream["args"]]) if upstream else None,
        "risks": list(risks_of(upstream)) if upstream else [],
        "questions": [_question(one) for one in way.questions],
    }


def _question(question: Question) -> dict[str, Any]:
    return {
        "name": question.name,
        "description": question.description[:_LONGEST],
        "is_required": question.is_required,
        "is_secret": question.is_secret,
        "is_repeated": question.is_repeated,
        "default": question.default,
        "choices": list(question.choices),
        "kind": question.kind[:_LONGEST],
        "hint": question.hint[:_LONGEST],
    }


VIEWS: Sequence[View] = (
    View("/registry", "registry.html", _found, "servers"),
    View("/registry/server", "registry_server.html", _server, "servers"),
)

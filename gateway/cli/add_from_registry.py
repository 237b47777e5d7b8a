"""`mcp-gateway add NAME` where NAME is a server of the registry: shown first, then written, started, and judged."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gateway.cli.answer_questions import ask_for_answers, read_settings, say_optional
from gateway.cli.ask_registry import ask_registry, say_age
from gateway.cli.exit_codes import DONE, refuse_to_guess
from gateway.cli.terminal import remark, say
from gateway.config.expansion import NoValue
from gateway.config.secret_sources import has_keyring, keep_in_keyring
from gateway.core.fact_words import plain
from gateway.core.registry.entry import DELETED, DEPRECATED, RegistryEntry, split_reference
from gateway.core.registry.inputs import Answers
from gateway.core.registry.risks import risks_of
from gateway.core.registry.ways import Way
from gateway.errors import ConfigError, InvalidRequest
from gateway.hosts.config_files.configuration_file import ConfigurationFile
from gateway.hosts.config_files.starter_config import check_upstream

if TYPE_CHECKING:
    from gateway.registry.plan_add import SecretAnswers


@dataclass(frozen=True)
class RegistryOptions:
    """The options of `add` that are for servers of the registry."""

    via: str | None = None
    values: Sequence[str] = ()
    name: str | None = None
    keyring: bool | None = None
    replace: bool = False
    pin: bool = False
    yes: bool = False


def add_from_registry(
    reference: str, file: ConfigurationFile, config: Path | None, options: RegistryOptions
) -> str | int:
    """Add a server of the registry to the file, after it was shown; return its name there, or an exit code."""
    # Imported here, as most servers are added without a registry.
    from gateway.registry.plan_add import check_complete, hide_secrets, read_answers, table_for

    if file.text.is_json:
        remedy = "start a mcp-gateway.toml: --config FILE"
        raise ConfigError("has another program's format, which keeps no version", where=str(file.path), remedy=remedy)
    server, version = split_reference(reference)
    found = ask_registry(config, lambda client: client.entry(server, version))
    if isinstance(found, int):
        return found
    say_age(found.age)
    entry = _offered(found.entry)
    name = _name(entry, file, options)
    way = _way(entry, options)
    given = read_settings(options.values)
    answers = read_answers(way, given)
    if not options.yes:
        answers = ask_for_answers(way.questions, answers, [each.strip("-") for each, _ in given])
    check_complete(way, answers)
    keyring = options.keyring if options.keyring is not None else has_keyring()
    secrets = hide_secrets(way, answers, name, keyring=keyring)
    upstream = table_for(entry, way, secrets.answers) | ({"pins": "hold"} if options.pin else {})
    changed = file.text.with_way_in(name, upstream) if options.replace else file.text.with_upstream(name, upstream)
    os.environ.update({key: value for key, value in secrets.in_variables.items() if key not in os.environ})
    check_upstream(name, upstream)
    show_plan(entry, way, upstream, secrets.answers)
    if not options.yes and not _agreed(name, file):
        return DONE
    _keep(secrets)
    file.write(changed)
    say(f"{file.path}: {name} {'changed' if options.replace else 'added'} ({entry.reference})")
    for variable in secrets.in_variables:
        remark(f"{name} gets its secret from the variable {variable}: set it wherever the gateway is started")
    return name


def _offered(entry: RegistryEntry) -> RegistryEntry:
    if entry.status == DELETED:
        raise InvalidRequest(f"{entry.reference} was withdrawn from the registry{_said(entry)}")
    if not entry.is_active:
        what = "deprecated" if entry.status == DEPRECATED else plain(entry.status, 40)
        remark(f"warning: {entry.reference} is {what}{_said(entry)}")
    return entry


def _said(entry: RegistryEntry) -> str:
    return f": {plain(entry.status_words, 300)}" if entry.status_words else ""


def _name(entry: RegistryEntry, file: ConfigurationFile, options: RegistryOptions) -> str:
    from gateway.registry.plan_add import name_for_entry
    from gateway.registry.plan_update import registered

    upstreams = file.text.upstreams()
    same = [name for name, reference in registered(upstreams).items() if split_reference(reference)[0] == entry.name]
    if options.name is not None:
        return options.name
    if options.replace:
        if len(same) != 1:
            raise ConfigError("--replace needs to know which server", remedy="name it: --as NAME")
        return same[0]
    if same:
        remedy = f"`mcp-gateway update {same[0]}` looks for a newer version; --as NAME adds another one"
        raise ConfigError(f"{same[0]} is this server already", where=str(file.path), remedy=remedy)
    return name_for_entry(entry.name, upstreams)


def _way(entry: RegistryEntry, options: RegistryOptions) -> Way:
    from gateway.registry.plan_add import choose_way, usable_ways

    if options.via is not None or options.yes or not sys.stdin.isatty():
        return choose_way(entry, options.via)
    ways = usable_ways(entry)
    if len(ways) == 1:
        return ways[0]
    say(f"{entry.reference} can be run in several ways:")
    for number, way in enumerate(ways, 1):
        say(f"  {number}  {plain(way.origin, 200)} ({way.runs_with})")
    while True:
        number: int = typer.prompt("Which", default=1, type=int)
        if 1 <= number <= len(ways):
            return ways[number - 1]


def show_plan(entry: RegistryEntry, way: Way, upstream: Mapping[str, Any], answers: Answers) -> None:
    """Show what a server is, where it comes from, and exactly what is run."""
    say(f"{entry.reference}{f': {plain(entry.description, 300)}' if entry.description else ''}")
    say(f"  from      {plain(way.origin, 300)}")
    if entry.repository:
        say(f"  source    {plain(entry.repository, 300)}")
    say(f"  digest    {f'SHA-256 {plain(way.digest, 80)}' if way.digest else _no_digest(way)}")
    if "url" in upstream:
        say(f"  url       {upstream['url']}")
    else:
        # In full: whatever is cut off could be what matters. Nothing in it is invisible (`literal`, `problem_with`).
        say(f"  command   {shlex.join([upstream['command'], *upstream['args']])}")
    for kind, label in (("env", "variable"), ("headers", "header  ")):
        for name, value in upstream.get(kind, {}).items():
            say(f"  {label}  {name} = {value}")
    say_optional(way.questions, answers)
    for risk in risks_of(upstream):
        say(f"  careful   {risk}")


def _no_digest(way: Way) -> str:
    if "@sha256:" in way.identifier:
        return "in the name of the image"
    return "none: whoever runs the server decides what it does" if way.kind == "url" else "none in the registry"


def _agreed(name: str, file: ConfigurationFile) -> bool:
    if not sys.stdin.isatty():
        refuse_to_guess(": --yes adds it")
    return typer.confirm(f"Add it to {file.path} as {name}?", default=True)


def _keep(secrets: "SecretAnswers") -> None:
    for entry, value in secrets.in_keyring.items():
        try:
            keep_in_keyring(entry, value)
        except NoValue as failed:
            remedy = "--no-keyring writes the name of a variable instead"
            raise ConfigError(f"{entry} cannot be stored: {failed}", remedy=remedy) from None

"""Adding a server of a registry: the choice of a way to run it, the answers to its questions, and its secrets."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.config.foreign import upstream_name
from gateway.config.server_names import name_for_command
from gateway.config.setting_types import OWN_NAME
from gateway.core.fact_words import plain
from gateway.core.near_names import which_name
from gateway.core.registry.entry import RegistryEntry
from gateway.core.registry.inputs import Answers, Question, UnusableEntry, defaults, problem_with
from gateway.core.registry.ways import Way, ways_of
from gateway.errors import ConfigError, InvalidRequest

_ODD = re.compile(r"[^A-Za-z0-9_.-]")
_NOT_OF_VARIABLES = re.compile(r"[^A-Z0-9_]")
_REFERENCE = re.compile(r"(?<!\$)\$\{")


@dataclass(frozen=True)
class SecretAnswers:
    """Answers with references in place of secrets: these are in the keyring (by entry) or in variables (by name)."""

    answers: Answers
    in_keyring: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    in_variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def usable_ways(entry: RegistryEntry) -> list[Way]:
    """Return the ways in which the gateway can run a server.

    Raises:
        InvalidRequest: there is none; it says why.
    """
    ways = ways_of(entry)
    usable = [way for way in ways if way.obstacle is None]
    if usable:
        return usable
    why = "; ".join(f"{plain(way.origin, 200)}: {way.obstacle}" for way in ways) or "its entry names none"
    raise InvalidRequest(f"there is no way to run {entry.reference} here: {why}")


def choose_way(entry: RegistryEntry, via: str | None) -> Way:
    """Return the way to run a server: the first of the kind `via`, or the first of all.

    Raises:
        InvalidRequest: there is none.
    """
    if via is not None and (wanted := [way for way in ways_of(entry) if way.kind == via]):
        if (usable := next((way for way in wanted if way.obstacle is None), None)) is not None:
            return usable
        raise InvalidRequest(f"{entry.reference} cannot be run via {via}: {wanted[0].obstacle}")
    ways = usable_ways(entry)
    if via is None:
        return ways[0]
    kinds = ", ".join(dict.fromkeys(way.kind for way in ways))
    raise InvalidRequest(f"{entry.reference} is not offered via {plain(via)}", remedy=f"there are: {kinds}")


def name_for_entry(name: str, taken: Collection[str]) -> str:
    """Return a free name for the upstream of a server."""
    wanted = name_for_command("npx", [name.partition("/")[2]])
    return upstream_name(wanted, {OWN_NAME, *taken})


def read_answers(way: Way, given: Sequence[tuple[str, str]]) -> dict[str, Sequence[str]]:
    """Return the answers that a user gives by name, checked; the entry's defaults for the others.

    Raises:
        ConfigError: a name that is not asked for, or a value that cannot be used.
    """
    questions = {one.name: one for one in way.questions}
    answers: dict[str, list[str]] = {}
    for name, value in given:
        question = questions.get(name.strip("-"))
        if question is None:
            remedy = which_name(name, questions, none="it asks for nothing")
            raise ConfigError(f"this server takes no value called {plain(name)!r}", remedy=remedy)
        answers.setdefault(question.name, []).append(checked_answer(question, value))
    for name, values in answers.items():
        if len(values) > 1 and not questions[name].is_repeated:
            raise ConfigError(f"{name} takes one value")
    left = [one for one in way.questions if one.name not in answers]
    return {**defaults(left), **{name: values for name, values in answers.items() if values != [""]}}


def checked_answer(question: Question, value: str) -> str:
    """Return the value if it can be used; it may be empty. Raises ConfigError."""
    if value and (problem := problem_with(question, value)) is not None:
        raise ConfigError(f"{question.name}: {problem}")
    return value


def missing_answers(way: Way, answers: Answers) -> list[Question]:
    """Return the questions that have to be answered, and are not."""
    return [one for one in way.questions if one.is_required and not answers.get(one.name)]


def check_complete(way: Way, answers: Answers) -> None:
    """Raise ConfigError if an answer is missing that has to be given."""
    if missing := missing_answers(way, answers):
        names = ", ".join(one.name for one in missing)
        example = missing[0].name
        reference = " or, for a secret, " + f"{example}='${{{variable_for(example)}}}'" if missing[0].is_secret else ""
        raise ConfigError(f"values are missing: {names}", remedy=f"give each: --set {example}=VALUE{reference}")


def hide_secrets(way: Way, answers: Answers, upstream: str, *, keyring: bool) -> SecretAnswers:
    """Put references in place of secrets: to the keyring, or else to variables of the environment."""
    in_keyring: dict[str, str] = {}
    in_variables: dict[str, str] = {}
    hidden = dict(answers)
    for question in way.questions:
        values = answers.get(question.name, ())
        if not question.is_secret or not values or any(map(_REFERENCE.search, values)):
            continue
        references: list[str] = []
        for number, value in enumerate(values, 1):
            name = question.name if number == 1 else f"{question.name}-{number}"
            if keyring:
                entry = _ODD.sub("_", f"{upstream}-{name}")
                in_keyring[entry] = value
                references.append(f"${{keyring:{entry}}}")
            else:
                variable = _variable(way, upstream, name)
                in_variables[variable] = value
                references.append(f"${{{variable}}}")
        hidden[question.name] = references
    return SecretAnswers(hidden, in_keyring, in_variables)


def variable_for(name: str) -> str:
    """Return the name of an environment variable for a value."""
    variable = _NOT_OF_VARIABLES.sub("_", name.upper())
    return f"_{variable}" if variable[:1].isdigit() else variable


def _variable(way: Way, upstream: str, name: str) -> str:
    """Return the variable of a secret: that of the server itself, or one with the upstream's name before it."""
    return name if name in (way.env or {}) else variable_for(f"{upstream}_{name}")


def table_for(entry: RegistryEntry, way: Way, answers: Answers) -> dict[str, Any]:
    """Return the table of the upstream. Raises ConfigError if the answers make none."""
    try:
        return way.upstream(answers, entry.reference)
    except UnusableEntry as error:
        raise ConfigError(str(error), where=entry.reference) from None

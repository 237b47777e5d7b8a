"""The values that an entry wants from its user, and the texts that they are put into.

An input of `server.json` has a fixed `value`, in which `{names}` stand for variables, or it is asked for itself. What
an entry fixes is literal: in the configuration, `${` of it is written as `$${`, so that no entry reads the user's
variables, files or keyring, or runs a command. What the user gives may refer to these.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from gateway.core.model.json_values import as_list, as_object, as_text
from gateway.core.model.texts import has_hidden

Answers = Mapping[str, Sequence[str]]
"""The values by the names of their questions, as the configuration has them; several for one that may be repeated."""

_VARIABLE = re.compile(r"\{([A-Za-z0-9_.-]{1,100})\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Also halves of surrogate pairs, which no file can hold."""
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_MOST_CHOICES = 200
_LONGEST = 10_000


class UnusableEntry(Exception):
    """An entry that cannot be used, with the reason in words."""


@dataclass(frozen=True)
class Question:
    """A value that an entry wants. `name` is unique in its way of running; `kind` is `string`, `number` ..."""

    name: str
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    is_repeated: bool = False
    default: str | None = None
    choices: tuple[str, ...] = ()
    kind: str = "string"
    hint: str = ""


class Asked(NamedTuple):
    """A place in a text for the answer to a question."""

    name: str


Template = tuple[str | Asked, ...]
"""A text with places for answers. The texts are as the configuration has them."""


def literal(text: str) -> str:
    """Return the text as the configuration has it: nothing in it refers to anything.

    Raises:
        UnusableEntry: it has characters that nobody would see.
    """
    if len(text) > _LONGEST:
        raise UnusableEntry("it has a text that is too long")
    if _CONTROL.search(text) or has_hidden(text):
        raise UnusableEntry("it has control characters or invisible ones in what would be run")
    return text.replace("${", "$${")


@dataclass
class Questions:
    """The questions of one way of running a server, in order."""

    known: dict[str, Question] = field(default_factory=dict[str, Question])

    def template(self, given: Mapping[str, Any], name: str, *, repeated: bool = False) -> Template:
        """Return the text of an input, whose own answer is called `name` if it has no fixed value."""
        value = as_text(given.get("value"))
        if value is None or value == "":
            return (self._asked(_question(given, name, repeated=repeated)),)
        return tuple(self._parts(value, as_object(given.get("variables")), repeated=repeated))

    def url(self, text: str, variables: Mapping[str, Any]) -> Template:
        """Return a URL in which `{names}` stand for variables, or for answers that there are already."""
        known = {name: as_object(one) for name, one in variables.items()}
        return tuple(self._parts(text, known, repeated=False))

    def _parts(self, text: str, variables: Mapping[str, Any], *, repeated: bool) -> Iterator[str | Asked]:
        end = 0
        for found in _VARIABLE.finditer(text):
            name = found[1]
            if name not in variables:
                continue
            if found.start() > end:
                yield literal(text[end : found.start()])
            end = found.end()
            variable = as_object(variables[name])
            fixed = as_text(variable.get("value"))
            yield literal(fixed) if fixed else self._asked(_question(variable, name, repeated=repeated))
        if end < len(text):
            yield literal(text[end:])

    def _asked(self, question: Question) -> Asked:
        """Add a question, unless it is the same as another one, and return its place."""
        name, number = question.name, 2
        while name in self.known and self.known[name] != replace(question, name=name):
            name, number = f"{question.name}-{number}", number + 1
        self.known[name] = replace(question, name=name)
        return Asked(name)


def _question(given: Mapping[str, Any], name: str, *, repeated: bool) -> Question:
    choices = tuple(one for one in as_list(given.get("choices"))[:_MOST_CHOICES] if isinstance(one, str))
    default = as_text(given.get("default"))
    return Question(
        _ODD.sub("-", name).strip("-") or "value",
        as_text(given.get("description")) or "",
        is_required=given.get("isRequired") is True,
        is_secret=given.get("isSecret") is True,
        is_repeated=repeated,
        default=None if default is None else literal(default),
        choices=tuple(map(literal, choices)),
        kind=as_text(given.get("format")) or "string",
        hint=as_text(given.get("placeholder")) or "",
    )


def defaults(questions: Sequence[Question]) -> dict[str, Sequence[str]]:
    """Return the answers that an entry proposes itself."""
    return {one.name: (one.default,) for one in questions if one.default}


def filled(template: Template, answers: Answers, turn: int = 0) -> str | None:
    """Put the answers into a text; None if one is missing. `turn` counts the repetitions of a repeated one."""
    texts: list[str] = []
    for part in template:
        if isinstance(part, str):
            texts.append(part)
        elif given := answers.get(part.name):
            texts.append(given[min(turn, len(given) - 1)])
        else:
            return None
    return "".join(texts)


def turns(template: Template, answers: Answers) -> int:
    """Return how often a repeated text is filled: as often as its answer with the most values."""
    return max((len(answers.get(part.name, ())) for part in template if isinstance(part, Asked)), default=1)


def problem_with(question: Question, answer: str) -> str | None:
    """Return why an answer of the user cannot be used; None if it can. A reference is taken as it is."""
    if _CONTROL.search(answer):
        return "it must be one line"
    if "${" in answer.replace("$${", ""):
        return None
    if question.choices and answer not in question.choices:
        return f"it must be one of {', '.join(question.choices)}"
    if question.kind == "number" and not _is_number(answer):
        return "it must be a number"
    if question.kind == "boolean" and answer not in ("true", "false"):
        return "it must be true or false"
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Asking at a terminal for the values that a server of the registry wants."""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer

from gateway.cli.exit_codes import refuse
from gateway.cli.terminal import remark, say
from gateway.core.fact_words import plain
from gateway.core.registry.inputs import Question, problem_with
from gateway.telemetry.sanitize import neutral

if TYPE_CHECKING:
    from gateway.core.registry.inputs import Answers


def read_settings(given: Sequence[str]) -> list[tuple[str, str]]:
    """Split the values of `--set NAME=VALUE`."""
    pairs = [one.partition("=") for one in given]
    if any(not found or not name.strip() for name, found, _ in pairs):
        refuse("give it as --set NAME=VALUE")
    return [(name.strip(), value) for name, _, value in pairs]


def ask_for_answers(questions: Sequence[Question], answers: "Answers", given: Sequence[str]) -> "Answers":
    """Return the answers with those that somebody at the terminal gives to the required questions.

    `given` are the names of those that were answered on the command line; nobody is asked for them.
    """
    asked: dict[str, Sequence[str]] = {}
    if sys.stdin.isatty():
        for question in questions:
            if question.is_required and question.name not in given:
                asked[question.name] = _asked(question)
    return {**answers, **asked}


def _asked(question: Question) -> Sequence[str]:
    values: list[str] = []
    while True:
        value = _one(question, more=bool(values))
        if value:
            values.append(value)
        if values and (not value or not question.is_repeated):
            return values


def _one(question: Question, *, more: bool) -> str:
    """Ask for one value; an empty one is accepted if there are some already."""
    default = "" if more or question.default is None else question.default
    while True:
        words = neutral(_words(question, more=more))
        value: str = typer.prompt(
            words, default=default, show_default=bool(default), hide_input=question.is_secret
        ).strip()
        problem = problem_with(question, value) if value else None if more else "it is needed"
        if problem is None:
            return value
        remark(f"{question.name}: {problem}")


def _words(question: Question, *, more: bool) -> str:
    if more:
        return f"{question.name}, another one (empty: no more)"
    facts = [
        plain(question.description, 200),
        f"one of {', '.join(question.choices)}" if question.choices else "",
        f"such as {plain(question.hint, 80)}" if question.hint else "",
        "not shown" if question.is_secret else "",
    ]
    said = "; ".join(fact for fact in facts if fact)
    return f"{question.name} ({said})" if said else question.name


def say_optional(questions: Sequence[Question], answers: "Mapping[str, Sequence[str]]") -> None:
    """Say what else could be set."""
    left = [one for one in questions if not one.is_required and not answers.get(one.name)]
    if left:
        say(f"  optional  {', '.join(plain(one.name, 60) for one in left[:20])} (--set NAME=VALUE)")

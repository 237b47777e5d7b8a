"""Merging prompt lists: the prompts of all upstreams as one list, and the route of each. Pure.

Their names follow the same prefix rule as those of tools, but no host's rules for tools: a person picks a prompt, and
no model API ever sees its name. What an upstream declared is kept; each edit is noted.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.names import NameRules, Names
from gateway.core.tools.catalogue.prefixes import Prefixing, PrefixRule, tool_identity
from gateway.core.tools.catalogue.repair import declared_name, repaired_prompt, unusable_prompt

_INVISIBLE = r"\xad\u034f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\U000e0000-\U000e0fff"
RULES = NameRules(budget=256, illegal=re.compile(rf"[\x00-\x1f\x7f-\x9f{_INVISIBLE}]"))
"""A name may be anything that can be printed, as long as it is bounded."""

_LONGEST_SHOWN = 100


@dataclass(frozen=True)
class PromptRoute:
    """The source of a prompt: an upstream, and the prompt's name there."""

    upstream: str
    prompt: str


@dataclass(frozen=True)
class PromptCatalogue:
    """The prompts as offered, their routes, what was changed (`notes`), and what needs attention."""

    prompts: tuple[dict[str, Any], ...] = ()
    routes: Mapping[str, PromptRoute] = field(default_factory=dict[str, PromptRoute])
    notes: tuple[Note, ...] = ()
    problems: tuple[Note, ...] = ()


@dataclass(frozen=True)
class _Candidate:
    upstream: str
    key: str
    declared: WireObject

    @property
    def name(self) -> str:
        return self.key


def build_prompts(prompts_by_upstream: Mapping[str, Sequence[Any]], prefix: PrefixRule) -> PromptCatalogue:
    """Merge the raw prompt lists of upstreams, in their order. Never raises for their contents."""
    notes: list[Note] = []
    problems: list[Note] = []
    found = [
        candidate
        for upstream, prompts in prompts_by_upstream.items()
        for candidate in _candidates(upstream, prompts, problems)
    ]
    names, prefixing = Names(RULES, "prompt"), Prefixing.of(prefix, RULES, found)
    offered: list[dict[str, Any]] = []
    routes: dict[str, PromptRoute] = {}
    for each in found:
        given = names.give(prefixing.wanted(each), tool_identity(each))
        prompt, changes = repaired_prompt(each.declared)
        notes += [Note(kind="schema", text=f"prompt {_quoted(given.name)}: {change}") for change in changes]
        if given.changes:
            how = f"is offered as {_quoted(given.name)}: {', '.join(given.changes)}"
            note = Note(kind="schema", text=f"prompt {_quoted(each.key)} of {each.upstream} {how}")
            (problems if given.collided else notes).append(note)
        offered.append({**prompt, "name": given.name})
        routes[given.name] = PromptRoute(each.upstream, each.key)
    return PromptCatalogue(tuple(offered), routes, (*notes, *problems), tuple(problems))


def _candidates(upstream: str, prompts: Sequence[Any], problems: list[Note]) -> list[_Candidate]:
    """Return the usable prompts of one upstream, each name once: requests could not distinguish two of them."""
    found: dict[str, _Candidate] = {}
    for position, prompt in enumerate(prompts, start=1):
        why = unusable_prompt(prompt)
        if why is not None:
            problems.append(Note(kind="dropped", text=f"{upstream}: {_described(prompt, position)} withheld: {why}"))
        elif (name := str(prompt["name"])) in found:
            problems.append(Note(kind="dropped", text=f"{upstream}: a second prompt named {_quoted(name)} withheld"))
        else:
            found[name] = _Candidate(upstream, name, prompt)
    return list(found.values())


def _described(prompt: Any, position: int) -> str:
    name = declared_name(prompt)
    return f"prompt number {position}" if name is None else f"prompt {_quoted(name)}"


def _quoted(name: str) -> str:
    return f"'{plain(name, _LONGEST_SHOWN)}'"

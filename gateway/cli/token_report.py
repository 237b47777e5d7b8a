"""Tokens on the command line: what a result costs each model before and after shaping, and what lists of tools cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from gateway.config.builtin_profiles import token_formulas
from gateway.content.shaping import Shaped
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import (
    TokenCount,
    content_of_blocks,
    content_of_result,
    count_content,
    formulas_for,
    token_words,
)


class ResultCost(NamedTuple):
    """What a result costs by one formula: as the upstream gave it, and as the host is sent it."""

    formula: str
    title: str
    given: TokenCount
    sent: TokenCount


def result_costs(shaped: Shaped, profile: Profile, model: str | None) -> list[ResultCost]:
    """Return the costs by each formula of the host's models; empty if nothing is known of them."""
    given = content_of_blocks(shaped.envelope.blocks)
    sent = content_of_result(shaped.result, profile.structured.host)
    return [
        ResultCost(formula.name, formula.title, count_content(given, formula), count_content(sent, formula))
        for formula in formulas_for(token_formulas(), profile.tokens.formulas, model)
    ]


def cost_line(costs: Sequence[ResultCost]) -> str:
    """Say in one line what a result costs by the likeliest formula, and by how many others it was counted."""
    first = costs[0]
    return f"{token_words(first.sent)}, by the formula of {first.title}"


def cost_lines(costs: Sequence[ResultCost]) -> Iterator[str]:
    """Say what a result costs by each formula, as it was given and as it is sent."""
    for cost in costs:
        yield f"{cost.title}: {token_words(cost.sent)} (given: {token_words(cost.given)})"
    if not costs:
        yield "the models of this host are not known: set gateway.model, or tokens.formulas of its profile"


def costs_json(costs: Sequence[ResultCost]) -> dict[str, Any]:
    """Return the costs by the name of the formula."""
    return {cost.formula: {"given": count_json(cost.given), "sent": count_json(cost.sent)} for cost in costs}


def count_json(count: TokenCount) -> dict[str, int]:
    """Return a count, with its total."""
    return {**asdict(count), "total": count.total}


def list_lines(costs: Mapping[str, int]) -> Iterator[str]:
    """Say what the tools of each upstream cost in a list, and all together."""
    for upstream, tokens in costs.items():
        yield f"{upstream}: about {tokens:,} tokens"
    yield f"in total: about {sum(costs.values()):,} tokens"

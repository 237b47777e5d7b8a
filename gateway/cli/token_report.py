"""Tokens on the command line, in words and as JSON: what a result costs each model, and what lists of tools cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gateway.content.shaping.result_costs import ResultCost
from gateway.core.tokens import TokenCount, token_words


def cost_line(hosts: Sequence[Sequence[ResultCost]]) -> str:
    """Say in one line what a result costs by the likeliest formula of each host; empty if none is known."""
    firsts = [costs[0] for costs in hosts if costs]
    return "; ".join(dict.fromkeys(f"{token_words(one.sent)}, by the formula of {one.title}" for one in firsts))


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

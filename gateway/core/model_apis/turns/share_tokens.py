"""The budget of a turn in tokens, divided among its results."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.core.model.envelope import Envelope
from gateway.core.model.turn import Call
from gateway.core.results.decisions import TokenBudget
from gateway.core.results.decisions.cut_texts import share
from gateway.core.results.decisions.structured import is_said
from gateway.core.tokens import content_of_blocks, count_content


def share_tokens(calls: Sequence[Call], budget: TokenBudget) -> list[TokenBudget]:
    """Return the budget of each result: small results get what they need, and large ones share the rest equally."""
    costs = {index: _cost(call.envelope, budget) for index, call in enumerate(calls)}
    shares = share(costs, budget.most)
    return [replace(budget, most=max(1, shares[index])) for index in range(len(calls))]


def _cost(envelope: Envelope, budget: TokenBudget) -> int:
    content = content_of_blocks(envelope.blocks, None if is_said(envelope) else envelope.structured_content)
    return max((count_content(content, formula).total for formula in budget.formulas), default=0)

"""The budget of a turn in tokens, divided among its results, and what a turn costs."""

from collections.abc import Sequence
from dataclasses import replace

from gateway.core.model.envelope import Envelope
from gateway.core.model.turn import Call, Part, Turn, Words
from gateway.core.results.decisions import TokenBudget
from gateway.core.results.decisions.cut_texts import share
from gateway.core.results.decisions.structured import is_said
from gateway.core.tokens import Content, Lengths, content_of_blocks, count_content, medium_in

_CAPTION = 50
"""Tokens of what is said of one medium: which one it is, where it stands, and its handle."""


def share_tokens(calls: Sequence[Call], budget: TokenBudget, lengths: Lengths) -> list[TokenBudget]:
    """Return the budget of each result: small results get what they need, and large ones share the rest equally."""
    costs = {index: _cost(call.envelope, budget, lengths) for index, call in enumerate(calls)}
    shares = share(costs, budget.most)
    return [replace(budget, most=max(1, shares[index])) for index in range(len(calls))]


def turn_tokens(turn: Turn, budget: TokenBudget, lengths: Lengths) -> int:
    """Return what a turn costs by whichever formula counts most; media of unknown cost count as nothing."""
    parts: list[Part] = [part for answer in turn.answers if answer.raw is None for part in answer.parts]
    parts += [*turn.follow_up_parts, *([Words(turn.reply)] if turn.reply else [])]
    texts = [part.text for part in parts if isinstance(part, Words)]
    media = [medium_in(part.data, lengths=lengths) for part in parts if not isinstance(part, Words)]
    return _most(Content(texts, media), budget)


def _cost(envelope: Envelope, budget: TokenBudget, lengths: Lengths) -> int:
    content = content_of_blocks(envelope.blocks, None if is_said(envelope) else envelope.structured_content, lengths)
    return _most(content, budget) + _CAPTION * len(content.media)


def _most(content: Content, budget: TokenBudget) -> int:
    return max((count_content(content, formula).total for formula in budget.formulas), default=0)

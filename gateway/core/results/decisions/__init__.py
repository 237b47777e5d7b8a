"""Deciding for a profile what to do with each block, given the outcomes known so far.

A decision that needs bytes to be changed or stored asks for an effect; while the outcome is missing, the decision is
provisional. `gateway.content.shaping.settle` performs the effects and decides again; the last decision is the one that
is written.
"""

from collections.abc import Collection, Mapping

from gateway.core.model.effects import Outcome
from gateway.core.model.envelope import Envelope
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions.block_decisions import (
    AsImage,
    AsIs,
    AsText,
    BlockDecision,
    Decisions,
    SentStructured,
    ToTextLine,
)
from gateway.core.results.decisions.blocks import decide_block, is_document
from gateway.core.results.decisions.budget import within_budget
from gateway.core.results.decisions.cut_structured import Accepts, cut_structured
from gateway.core.results.decisions.cut_texts import note_cuts
from gateway.core.results.decisions.decision_context import DecisionContext
from gateway.core.results.decisions.fit_tokens import within_tokens
from gateway.core.results.decisions.lengths import lengths_of
from gateway.core.results.decisions.structured import structured_as_text
from gateway.core.results.decisions.token_budget import TokenBudget
from gateway.core.results.decisions.write_blocks import error_words

__all__ = ["Accepts", "AsImage", "AsIs", "AsText", "BlockDecision", "Decisions", "ToTextLine", "TokenBudget", "decide"]


def decide(
    envelope: Envelope,
    profile: Profile,
    outcomes: Mapping[str, Outcome],
    describes: Collection[str] = (),
    tokens: TokenBudget | None = None,
    accepts: Accepts | None = None,
) -> Decisions:
    """Decide what to do with each block of the envelope. Pure; never raises.

    `describes` are the kinds of media (`image`, `audio`) that can be described in words if they cannot be shown.
    `tokens` is the budget of the result in tokens, if it has one. `accepts` says whether cut structured content fits
    the output schema that the host knows; None: it must not be cut.
    """
    context = DecisionContext(envelope, profile, outcomes, describes)
    decided: dict[int, list[BlockDecision]] = {}
    # Documents come last: their pages get the images that remain, wherever they stand.
    for index in sorted(range(len(envelope.blocks)), key=lambda index: is_document(envelope.blocks[index])):
        decided[index] = decide_block(context, index, envelope.blocks[index])
    decided_blocks = [decision for index in range(len(envelope.blocks)) for decision in decided[index]]
    context.notes.sort(key=lambda note: note.block or 0)
    folded = structured_as_text(envelope, profile)
    if folded is not None:
        context.note("moved", "structured content as text", None)
        decided_blocks.append(AsText(folded, key=str(len(envelope.blocks))))
    elif envelope.has_structured_content and profile.structured.send == "never":
        context.note("repeated", "structured content, which the result's blocks already say", None)
    structured: SentStructured | None = None
    if envelope.has_structured_content and profile.structured.send == "always":
        content = SentStructured(envelope.structured_content)
        structured = content if accepts is None else cut_structured(context, decided_blocks, accepts, tokens)
        if structured.line is not None:
            decided_blocks.append(ToTextLine(structured.line))
    # The room that a page's data takes was taken before, from the profile.
    decided_blocks = within_budget(context, decided_blocks, None if accepts is None else structured)
    if profile.handles == "always":
        decided_blocks = [context.with_handle(decision) for decision in decided_blocks]
    if tokens is not None:
        decided_blocks = within_tokens(context, decided_blocks, tokens, structured)
    note_cuts(context, decided_blocks)
    error = error_words(envelope, profile, decided_blocks)
    if error.unflagged:
        context.note("moved", "the error flag is said in text, because this host drops media beside it", None)
    return Decisions(
        decided_blocks=tuple(decided_blocks),
        wanted={key: effect for key, effect in context.wanted.items() if key not in outcomes},
        notes=tuple(context.notes),
        error=error,
        structured=structured,
        lengths=lengths_of(context.wanted, outcomes),
    )

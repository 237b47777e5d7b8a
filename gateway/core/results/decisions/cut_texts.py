"""Cutting the texts of a result to a limit: the head and the tail stay, and a line says how to read the rest.

Of a JSON text, its shape stays: a head of JSON would be one long row, and a tail its brackets.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from gateway.core import wording
from gateway.core.model.effects import JsonOutlined, OutlineJson
from gateway.core.results.decisions.block_decisions import AsText, BlockDecision
from gateway.core.results.decisions.decision_context import DecisionContext
from gateway.core.results.json_outline import LEAST_ROOM, MOST_CHARS, json_outline, may_be_json

_CUT_LINE = 160
"""Characters for the line that says how much was left out."""
_SHAPE_LINE = 100
"""Further characters for the line above the shape of a JSON text."""
_BREAK_WITHIN = 2_000
"""Maximum distance, in characters, that a cut may move to coincide with the end of a line."""


def share(sizes: Mapping[int, int], room: int) -> dict[int, int]:
    """Divide `room` fairly: small sizes are granted in full, and the large ones share the remainder equally."""
    shares: dict[int, int] = {}
    left = max(0, room)
    by_size = sorted(sizes, key=lambda index: (sizes[index], index))
    for place, index in enumerate(by_size):
        shares[index] = min(sizes[index], left // (len(by_size) - place))
        left -= shares[index]
    return shares


def cut_texts(
    context: DecisionContext,
    decided_blocks: list[BlockDecision],
    limit: int | None,
    cost: Callable[[str], int] = len,
) -> list[BlockDecision]:
    """Cut texts to `limit` characters together, the longest first; None is no limit.

    A text stays as it is if it would have a higher `cost` once it was cut.
    """
    sizes = text_sizes(decided_blocks)
    if limit is None or sum(sizes.values()) <= limit:
        return decided_blocks
    shares = share(sizes, limit)
    cut = sum(sizes[place] > shares[place] for place in sizes)
    if cut > 1 and limit < 2 * _CUT_LINE * cut:  # their lines alone would use up the limit
        return cut_texts(context, _joined(decided_blocks), limit, cost)
    return [
        _cut(context, decision, shares[place], cost)
        if isinstance(decision, AsText) and sizes[place] > shares[place]
        else decision
        for place, decision in enumerate(decided_blocks)
    ]


def _joined(decided_blocks: list[BlockDecision]) -> list[BlockDecision]:
    """Return the same with all texts as one, in place of the first: each alone would be cut to less than the line."""
    texts = [decision for decision in decided_blocks if isinstance(decision, AsText)]
    whole = "\n".join(text.whole if text.whole is not None else text.text for text in texts)
    one = replace(texts[0], text=whole, key="texts", whole=None)
    return [
        one if decision is texts[0] else decision
        for decision in decided_blocks
        if decision is texts[0] or not isinstance(decision, AsText)
    ]


def text_sizes(decided_blocks: list[BlockDecision]) -> dict[int, int]:
    """Return the length of each text in characters, by its index."""
    return {place: len(decision.text) for place, decision in enumerate(decided_blocks) if isinstance(decision, AsText)}


def _cut(context: DecisionContext, decision: AsText, room: int, cost: Callable[[str], int]) -> AsText:
    """Keep the head and tail of a text, with a line between them that says how to read the rest."""
    whole = decision.whole if decision.whole is not None else decision.text
    media_type = "application/json" if decision.index is None else "text/plain"
    handle = context.keep(f"text:{decision.key}", whole, media_type, is_text=True)
    url = context.url(f"text:{decision.key}")
    kept = max(0, room - _CUT_LINE - len(url or ""))
    shape = _shape(context, decision.key, whole, kept - _SHAPE_LINE)
    if shape is not None:
        line = wording.shape_mark(len(whole), handle, context.profile.tools.helpers, url)
        text = f"{line}\n{shape}"
        if cost(text) < cost(decision.text):
            return replace(decision, text=text, whole=whole, left_out=len(whole) - len(shape))
    head_end = _line_end(whole, kept * 3 // 4)
    tail_start = _line_start(whole, len(whole) - (kept - kept * 3 // 4))
    left_out = tail_start - head_end
    line = wording.cut_mark(left_out, len(whole), head_end, handle, context.profile.tools.helpers, url)
    text = whole[:head_end] + line + whole[tail_start:]
    if cost(text) >= cost(decision.text):  # the line is longer than what it would stand for
        return decision
    return replace(decision, text=text, whole=whole, left_out=left_out)


def _shape(context: DecisionContext, key: str, text: str, room: int) -> str | None:
    """Return the shape of a JSON text in at most `room` characters; that of a long one once a worker has written it."""
    if len(text) <= MOST_CHARS:
        return json_outline(text, room)
    if room < LEAST_ROOM or not may_be_json(text):
        return None
    outlined = context.want(OutlineJson(f"outline:{key}", text.encode("utf-8", "replace")))
    shapes = outlined.shapes if isinstance(outlined, JsonOutlined) else ()
    return next((shape for shape in shapes if len(shape) <= room), None)


def _line_end(text: str, at: int) -> int:
    found = text.rfind("\n", max(0, at - min(_BREAK_WITHIN, at // 4)), at)
    return found if found > 0 else at


def _line_start(text: str, at: int) -> int:
    found = text.find("\n", at, at + min(_BREAK_WITHIN, (len(text) - at) // 4))
    return found + 1 if found >= 0 else at


def note_cuts(context: DecisionContext, decided_blocks: list[BlockDecision]) -> None:
    """Record a note for each text that was cut."""
    for decision in decided_blocks:
        if isinstance(decision, AsText) and decision.whole is not None:
            context.note("cut", f"{decision.left_out:,} of {len(decision.whole):,} characters of text", decision.index)

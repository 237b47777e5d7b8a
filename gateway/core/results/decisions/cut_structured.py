"""Cutting structured content to its shape, for hosts that limit it: still JSON that fits the output schema.

The first rows of lists, the first keys of objects and the beginnings of texts stay, with the counts of what is left
out; the whole is behind a handle.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.core import fact_words, own_names, wording
from gateway.core.model.effects import Failed
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import is_list, is_object
from gateway.core.results.decisions.block_decisions import BlockDecision, SentStructured
from gateway.core.results.decisions.budget import room_beside
from gateway.core.results.decisions.decision_context import DecisionContext
from gateway.core.results.decisions.token_budget import LEAST_BUDGET, TokenBudget
from gateway.core.tokens import read_of_structured, text_tokens

Accepts = Callable[[Any], bool]
"""Whether a value fits the output schema that the host knows of the tool."""

_KEY = "structured"
_LINE = 400
"""Characters kept free for the words that say what was left out."""
_MOST_PLACES = 6
"""Places that are named in these words."""


@dataclass(frozen=True)
class _Detail:
    """How much is kept: rows of each list, keys of each object, characters of each text; None is all."""

    rows: int | None
    keys: int | None
    chars: int | None

    def gentler(self) -> Iterator["_Detail"]:
        """Yield this, and what is cut less: a schema may require each key, and a form of texts."""
        yield self
        yield replace(self, keys=None)
        yield replace(self, keys=None, chars=None)


_DETAILS = (
    _Detail(2_000, 2_000, 10_000),
    _Detail(300, 300, 2_000),
    _Detail(100, 100, 600),
    _Detail(30, 60, 300),
    _Detail(10, 40, 120),
    _Detail(3, 20, 60),
    _Detail(1, 12, 40),
    _Detail(0, 8, 24),
)
"""From much to little: the first that fits is taken."""


class _Full(Exception):
    """There is no room for more."""


@dataclass(frozen=True)
class _Room:
    """The room for structured content, as compact JSON: `chars`, and `tokens` by the estimate; None is no limit."""

    chars: int | None
    tokens: int | None

    def fits(self, compact: str) -> bool:
        """Whether there is room for it."""
        return (self.chars is None or len(compact) <= self.chars) and (
            self.tokens is None or text_tokens(compact) <= self.tokens
        )


def cut_structured(
    context: DecisionContext, decided_blocks: list[BlockDecision], accepts: Accepts, tokens: TokenBudget | None
) -> SentStructured:
    """Return the structured content that is sent beside these decisions: whole if there is room for it.

    The room is what the profile allows for it (`structured.max_chars`), what the blocks leave of the whole result
    (`limits.result_chars`), and, where the host's model reads it, the budget in tokens. Otherwise, return its shape,
    once the whole is stored. If it cannot be stored, or no shape fits the output schema, it stays whole, with a note.
    """
    value, rules = context.envelope.structured_content, context.profile
    as_it_came = SentStructured(value)
    if tokens is None and rules.structured.max_chars is None and rules.limits.result_chars is None:
        return as_it_came
    compact = compact_json(value)
    room = _room(context, decided_blocks, len(compact), tokens)
    if room.fits(compact):
        return as_it_came
    handle = context.keep(_KEY, compact, "application/json", is_text=True)
    if isinstance(context.outcomes.get(_KEY), Failed):
        context.note("failed", f"structured content of {len(compact):,} characters is sent whole: not kept", None)
        return as_it_came
    words = _Words(len(compact), handle, rules.tools.helpers, context.url(_KEY))
    in_text = rules.structured.is_read_with_text
    most = len(compact) if room.chars is None else room.chars
    for detail in (gentler for one in _DETAILS for gentler in one.gentler()):
        try:
            shape = _Shape(detail, most - _LINE)
            cut = shape.of(value)
        except _Full:
            continue
        line = words.about(shape.left_out)
        if not in_text:
            if not is_object(cut):
                break  # only an object has a place for the words
            cut = {own_names.LEFT_OUT: line, **cut} | {own_names.LEFT_OUT: line}
        sent = compact_json(cut)
        if len(sent) < len(compact) and room.fits(sent) and accepts(cut):
            context.note("cut", f"structured content of {len(compact):,} characters to its shape, {len(sent):,}", None)
            return SentStructured(cut, line if in_text else None)
    context.wanted.pop(_KEY, None)
    why = "no shape of it fits the tool's output schema and says what is left out"
    context.note("failed", f"structured content of {len(compact):,} characters is sent whole: {why}", None)
    return as_it_came


def _room(
    context: DecisionContext, decided_blocks: list[BlockDecision], chars: int, tokens: TokenBudget | None
) -> _Room:
    """Return the room for structured content of so many characters beside these decisions."""
    rules = context.profile.structured
    limits = (rules.max_chars, room_beside(context, decided_blocks, chars))
    is_read = read_of_structured(rules.host, is_alone=not decided_blocks) != "never"
    return _Room(
        min((limit for limit in limits if limit is not None), default=None),
        max(tokens.most, LEAST_BUDGET) * 3 // 4 if tokens is not None and is_read else None,
    )


@dataclass(frozen=True)
class _Words:
    """What is known of the whole."""

    chars: int
    handle: str | None
    readable: bool
    url: str | None

    def about(self, left_out: Mapping[str, str]) -> str:
        places = [f"{count} in {place}" for place, count in list(left_out.items())[:_MOST_PLACES]]
        more = [f"parts of {len(left_out) - _MOST_PLACES:,} more places"] if len(left_out) > _MOST_PLACES else []
        return wording.structured_mark(self.chars, [*places, *more], self.handle, self.readable, self.url)


@dataclass
class _Shape:
    """Cuts one value; raises _Full when more than `room` characters are left of it.

    `left_out` says how much is kept of what was cut, by its place as a JMESPath expression.
    """

    detail: _Detail
    room: int
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    def of(self, value: Any, place: str = "") -> Any:
        if is_object(value):
            return self._object(value, place)
        if is_list(value):
            return self._list(value, place)
        if isinstance(value, str):
            return self._text(value, place)
        self._take(len(json.dumps(value)))
        return value

    def _object(self, value: Mapping[str, Any], place: str) -> dict[str, Any]:
        kept = self._kept(len(value), self.detail.keys, "keys", place)
        cut: dict[str, Any] = {}
        for key, member in value.items():
            if len(cut) == kept:
                break
            self._take(len(key) + 4)
            cut[key] = self.of(member, f"{place}.{_named(key)}" if place else _named(key))
        return cut

    def _list(self, value: list[Any], place: str) -> list[Any]:
        kept = self._kept(len(value), self.detail.rows, "rows", place)
        return [self.of(member, f"{place}[]") for member in value[:kept]]

    def _text(self, value: str, place: str) -> str:
        most = self.detail.chars
        cut = value if most is None or len(value) <= most else value[:most] + "…"
        if cut is not value:
            self.left_out.setdefault(place or "@", f"{most:,} of {len(value):,} characters")
        self._take(len(cut) + 3)
        return cut

    def _kept(self, length: int, most: int | None, what: str, place: str) -> int:
        self._take(2)
        if most is None or length <= most:
            return length
        self.left_out.setdefault(place or "@", f"{most:,} of {length:,} {what}")
        return most

    def _take(self, chars: int) -> None:
        self.room -= chars
        if self.room < 0:
            raise _Full


def _named(key: str) -> str:
    """A key as JMESPath writes it, on one line."""
    plain = key.isascii() and key.replace("_", "a").isalnum() and not key[0].isdigit()
    return key if plain and len(key) <= 60 else f'"{fact_words.plain(key, 60)}"'

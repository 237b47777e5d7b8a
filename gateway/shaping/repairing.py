"""A request to a model API, repaired: the media in its tool results where the model behind sees it.

The same loop of planning and performing as for a turn, over every turn of the history.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import anyio.to_thread
import pybase64

from gateway.config.schema import HistorySettings
from gateway.core import wording
from gateway.core.assembling import Assembled, Choices, assemble
from gateway.core.model.base64_text import mend
from gateway.core.model.blocks import Block
from gateway.core.model.contents import found_in
from gateway.core.model.effects import Outcome
from gateway.core.model.model_profile import ModelProfile
from gateway.core.model.notes import Note
from gateway.core.model.turn import Answer, Call, Words
from gateway.core.planning import ROUNDS
from gateway.core.requests import DIALECTS, Dialect, FoundTurn, Piece, RepairedTurn, splice
from gateway.core.requests.handles import expanded, handles_in
from gateway.core.requests.history import HistoryLimits, Weight, first_in_full
from gateway.core.requests.judging import images_in, is_right, older, once, place_of, shows, weight_of
from gateway.core.requests.pieces import value_at
from gateway.core.requests.shapes import has_media
from gateway.core.rescue import block_for
from gateway.errors import ContentError
from gateway.shaping.effects import Describer, Hands, MediaWork, perform
from gateway.shaping.rehosting import Files, with_files_fetched, with_files_uploaded
from gateway.shaping.turns import WRITERS
from gateway.store import ContentStore, fetch_bytes

_IN_PLACE = 256 * 1024
"""Bytes of a request up to which it is read on the event loop; larger ones are read in a thread."""

_KINDS = {"image": "image", "image_url": "image", "input_image": "image", "video_url": "video", "audio_url": "audio"}


Choose: TypeAlias = Callable[[str | None], ModelProfile]
"""The model profile for a model's name, None where none was named."""


@dataclass(frozen=True)
class Change:
    """One repair: where in the request, and what stood and stands there."""

    where: str
    before: Any
    after: Any


@dataclass(frozen=True)
class RepairedRequest:
    """The request as it goes on, the very bytes that came unless something was repaired; and what was done."""

    body: bytes
    changes: tuple[Change, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass
class Repairer:
    """What repairs requests: a store for handles, workers for media, and what describes, all alive as long as this.

    `files`: the files of the model API's provider, for what is too large to be sent with every request.
    """

    store: ContentStore
    media: MediaWork
    history: HistorySettings
    describer: Describer | None = None
    files: Files | None = None

    async def repair(
        self, body: bytes, dialect: str, choose: Choose, *, model: str | None = None, owner: str = "local"
    ) -> RepairedRequest:
        """The request with its tool results as the model behind takes them. Never raises for what is in the request.

        Args:
            body: the JSON of a request.
            dialect: a key of `gateway.core.requests.DIALECTS`.
            choose: gives the profile of the model of this name.
            model: the model's name, where it is not in the request.
            owner: whose handles are opened, and whom kept content belongs to.
        """
        form = DIALECTS[dialect]
        if len(body) <= _IN_PLACE:
            request, turns = _read(body, form)
        else:
            request, turns = await anyio.to_thread.run_sync(_read, body, form)
        if not turns:
            return RepairedRequest(body)
        named: Any = request.get("model")
        profile = choose(model or (named if isinstance(named, str) else None))
        turns = await self._weighed(request, turns, profile, len(body), owner)
        repaired: list[RepairedTurn] = []
        notes: list[Note] = []
        for turn in turns:
            done, said = await self._lowered(request, turn, profile, owner)
            if done.answers:
                repaired.append(done)
                notes += said
        if not repaired:
            return RepairedRequest(body)
        write = WRITERS[profile.writing]
        return await anyio.to_thread.run_sync(_written, body, request, repaired, form, write, tuple(notes))

    async def _weighed(
        self, request: Any, turns: Sequence[FoundTurn], profile: ModelProfile, size: int, owner: str
    ) -> list[FoundTurn]:
        """The turns with handles opened in results that stay in full, media once, and lines for that of older ones."""
        opened = [await self._open(piece, profile, owner) for turn in turns for piece in turn.pieces]
        cut = _cut(request, opened, profile, self.history, size)
        with_media = sorted({piece.result for piece in opened if piece.found})
        oldest = with_media[cut] if cut < len(with_media) else (with_media[-1] + 1 if with_media else 0)
        plain = {piece.where: piece for turn in turns for piece in turn.pieces}
        kept = [piece for piece in opened if piece.result >= oldest]
        contents = {piece.where: _with(piece, envelope) for piece, envelope in zip(kept, once(kept), strict=True)}
        for piece in opened:
            if piece.result < oldest:
                contents[piece.where] = await self._older(plain[piece.where], owner)
        return [replace(turn, pieces=tuple(contents[piece.where] for piece in turn.pieces)) for turn in turns]

    async def _open(self, piece: Piece, profile: ModelProfile, owner: str) -> Piece:
        """The piece with what its handles stand for, where the model can be shown it and the caller may read it."""
        contents: dict[str, Block] = {}
        for handle in handles_in(piece.call.envelope):
            try:
                stored = await self.store.metadata(handle, owner=owner)
                if not shows(stored.media_type, profile):
                    continue
                content = await fetch_bytes(self.store, handle, owner=owner)
            except ContentError:
                continue  # not the caller's, or gone: the line stays, and says what it was
            found = found_in(mend(pybase64.b64encode(content).decode("ascii")), stored.media_type)
            if found is not None:
                contents[handle] = block_for(found)
        return _with(piece, expanded(piece.call.envelope, contents)) if contents else piece

    async def _older(self, piece: Piece, owner: str) -> Piece:
        handles: dict[str, str] = {}
        for found in piece.found:
            try:
                content = pybase64.b64decode(found.data)
                kept = await self.store.put(content, owner=owner, media_type=found.media_type or "")
                handles[found.data] = kept.handle
            except ContentError:
                continue  # too large to be kept: named all the same
        return _with(piece, older(piece.call.envelope, handles))

    async def _lowered(
        self, request: Any, turn: FoundTurn, profile: ModelProfile, owner: str
    ) -> tuple[RepairedTurn, tuple[Note, ...]]:
        pieces = [piece for piece in turn.pieces if piece.changed or not is_right(piece, profile)]
        assembled = await self._assembled([piece.call for piece in pieces if _has_content(piece)], profile, owner)
        written = iter(assembled.turn.answers)
        answers: list[tuple[Piece, Answer]] = []
        carried: list[tuple[str, Any]] = []
        for piece in pieces:
            if piece.by_reference:
                answer, more = _referring(piece, value_at(request, piece.where), profile, len(carried) + 1)
                answers.append((piece, answer))
                carried += more
            elif _has_content(piece):
                answers.append((piece, next(written)))
        return RepairedTurn(tuple(answers), assembled.turn.follow_ups, tuple(carried), turn.after), assembled.notes

    async def _assembled(self, calls: Sequence[Call], profile: ModelProfile, owner: str) -> Assembled:
        outcomes: dict[str, Outcome] = {}
        hands = Hands(self.store, self.media, self.describer)
        choices = Choices(describes=hands.describes)
        calls = await with_files_fetched(calls, profile, self.files)
        assembled = assemble(calls, profile, outcomes, choices)
        for _ in range(ROUNDS):
            if not assembled.wanted:
                break
            outcomes |= await perform(assembled.wanted, hands, owner)
            assembled = assemble(calls, profile, outcomes, choices)
        turn, told = await with_files_uploaded(assembled.turn, profile, self.files)
        return replace(assembled, turn=turn, notes=(*assembled.notes, *told))


def _read(body: bytes, form: Dialect) -> tuple[Any, tuple[FoundTurn, ...]]:
    try:
        request: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None, ()  # the API says what is wrong with it
    return request, form.find(cast("dict[str, Any]", request)) if isinstance(request, dict) else ()


def _written(
    body: bytes, request: Any, turns: Sequence[RepairedTurn], form: Dialect, write: Any, notes: tuple[Note, ...]
) -> RepairedRequest:
    spliced = splice(request, turns, form, write)
    if spliced == request:
        return RepairedRequest(body)
    try:
        text = json.dumps(spliced, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return RepairedRequest(body)  # a number that no JSON can hold
    changes = tuple(_change(request, piece, answer) for turn in turns for piece, answer in turn.answers)
    try:
        written = text.encode("utf-8")
    except UnicodeEncodeError:
        # A lone surrogate cannot be UTF-8; escaped, it travels as it came.
        written = json.dumps(spliced, separators=(",", ":")).encode("ascii")
    return RepairedRequest(written, changes, notes)


def _change(request: Any, piece: Piece, answer: Answer) -> Change:
    return Change(".".join(str(key) for key in piece.where), value_at(request, piece.where), answer.text)


def _cut(request: Any, pieces: Sequence[Piece], profile: ModelProfile, history: HistorySettings, size: int) -> int:
    """The first of the results with media that stays in full."""
    weights: dict[int, Weight] = {}
    for piece in pieces:
        if piece.found:
            one, before = weight_of(piece, profile), weights.get(piece.result, Weight(0, 0))
            weights[piece.result] = Weight(before.images + one.images, before.chars + one.chars)
    chars = sum(len(found.data) for piece in pieces if not piece.changed for found in piece.found)
    images = profile.image.max_count
    if images is not None:
        native = sum(len(piece.found) for piece in pieces if piece.native)
        images = max(0, images - max(0, images_in(request) - native))
    beside = max(0, size - chars)
    most = profile.max_request_bytes
    limits = HistoryLimits(
        results=history.results or None,
        chars=history.bytes * 4 // 3 or None,
        images=images,
        request_chars=None if most is None else max(0, most - beside),
    )
    return first_in_full([weights[result] for result in sorted(weights)], limits)


def _with(piece: Piece, envelope: Any) -> Piece:
    if envelope is piece.call.envelope:
        return piece
    return replace(piece, call=replace(piece.call, envelope=envelope), changed=True)


def _has_content(piece: Piece) -> bool:
    """Whether there is something to write: not for a line that nothing came of."""
    return piece.changed or piece.foreign or has_media(piece.call.envelope)


def _referring(piece: Piece, part: Any, profile: ModelProfile, number: int) -> tuple[Answer, list[tuple[str, Any]]]:
    """What stands in a result for a part without bytes, and the part itself where it may follow."""
    kind = _KINDS.get(part.get("type"), "document")
    label = wording.media_by_reference(kind, number)
    if place_of(kind, profile) == "none":
        return Answer(piece.call, (Words(wording.marker(label, "this model does not take it")),)), []
    caption = wording.whose(label, piece.call.name, piece.call.id)
    return Answer(piece.call, (Words(wording.marker(label, "after the tool results")),)), [(caption, part)]

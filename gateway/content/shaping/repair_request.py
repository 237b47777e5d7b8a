"""Repair a request to a model API: move the media in its tool results to where the model sees it.

Every turn of the history is settled like a new one.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

import anyio.to_thread
import pybase64
from anyio.lowlevel import checkpoint

from gateway.config.model_proxy_settings import HistorySettings
from gateway.content.shaping.effects import EffectRunner, MediaDescriber
from gateway.content.shaping.named_content import NamedContent, Room, open_named
from gateway.content.shaping.provider_file_links import Files, with_files_fetched, with_files_uploaded
from gateway.content.shaping.settle import settle_turn
from gateway.content.store import ContentStore
from gateway.core import wording
from gateway.core.model.effects import MediaWork
from gateway.core.model.json_shape import is_deep
from gateway.core.model.json_values import is_dict
from gateway.core.model.notes import Note
from gateway.core.model.turn import Answer, Call, Words
from gateway.core.model_apis.registry import APIS, REQUEST_APIS, RequestApi
from gateway.core.model_apis.requests.accepted_media import images_in, in_user_message, is_right, place_of
from gateway.core.model_apis.requests.find_lines import CAPTION, NAMED, WHOLE_LINES, How, expanded, handles_in
from gateway.core.model_apis.requests.found_results import FoundTurn, Piece, RepairedTurn, Where, drops_media
from gateway.core.model_apis.requests.history_media import HistoryLimits, Weight, first_in_full, older, once, weight_of
from gateway.core.model_apis.requests.observations import find_observations, in_order
from gateway.core.model_apis.requests.request_edits import value_at
from gateway.core.model_apis.requests.result_formats import has_media
from gateway.core.model_apis.requests.splice_results import splice
from gateway.core.model_apis.turns import Assembled, Choices
from gateway.core.profiles.model_profile import ModelProfile
from gateway.errors import ContentError

_IN_PLACE = 256 * 1024
"""The size in bytes above which a request is worked on in a thread instead of on the event loop."""

_KINDS = {"image": "image", "image_url": "image", "input_image": "image", "video_url": "video", "audio_url": "audio"}


ResultT = TypeVar("ResultT")
Choose: TypeAlias = Callable[[str | None], ModelProfile]
"""Returns the model profile for a model's name, or for None if the request names no model."""


@dataclass(frozen=True)
class Change:
    """One repair: its place in the request, and the value before and after."""

    where: str
    before: Any
    after: Any


@dataclass(frozen=True)
class RepairedRequest:
    """The request to forward, unchanged unless something was repaired, and what was done to it.

    `model` is the model's name and `profile` its profile; None if there were no tool results to repair.
    """

    body: bytes
    changes: tuple[Change, ...] = ()
    notes: tuple[Note, ...] = ()
    model: str | None = None
    profile: ModelProfile | None = None


@dataclass
class Repairer:
    """Repairs requests with a store for handles, workers for media and a describer, which must all stay open.

    `files` are the files of the model API's provider, for media that is too large to be sent with every request.
    """

    store: ContentStore
    media: MediaWork
    history: HistorySettings
    describer: MediaDescriber | None = None
    files: Files | None = None

    async def repair(
        self,
        body: bytes,
        dialect: str,
        choose: Choose,
        *,
        model: str | None = None,
        owner: str = "local",
        reinject: bool = True,
    ) -> RepairedRequest:
        """Return the request with its tool results in the form the model takes. Never raises for a request's content.

        Args:
            body: the JSON of a request.
            dialect: a key of `gateway.core.model_apis.registry.REQUEST_APIS`.
            choose: returns the model profile for a model's name.
            model: the model's name if it is not in the request.
            owner: the owner of the handles that are opened and of the content that is stored.
            reinject: whether to put content back where the gateway's own lines name it.
        """
        form = REQUEST_APIS[dialect]
        request, turns = await _apart(body, partial(_read, body, form, dialect if reinject else None))
        if not turns:
            return RepairedRequest(body)
        told: Any = request.get("model")
        model = model or (told if isinstance(told, str) else None)
        profile = choose(model)
        named = _Named()
        if reinject:
            named = await self._named(request, [piece for turn in turns for piece in turn.pieces], profile, owner, body)
        repaired = await self._repaired(body, request, turns, named, form, profile, owner)
        return replace(repaired, model=model, profile=profile)

    async def _repaired(
        self,
        body: bytes,
        request: Any,
        turns: Sequence[FoundTurn],
        named: "_Named",
        form: RequestApi,
        profile: ModelProfile,
        owner: str,
    ) -> RepairedRequest:
        turns, notes = await self._weighed(request, turns, named, profile, body, owner)
        repaired: list[RepairedTurn] = []
        for turn in turns:
            await checkpoint()  # a history may have thousands of turns without anything to wait for
            done, said = await self._lowered(request, turn, profile, owner)
            if done.answers:
                repaired.append(done)
                notes += said
        if not repaired:
            return RepairedRequest(body)
        spliced = partial(splice, request, repaired, form, APIS[profile.writing])
        return await anyio.to_thread.run_sync(_written, body, request, repaired, spliced, tuple(notes))

    async def _named(
        self, request: Any, pieces: Sequence[Piece], profile: ModelProfile, owner: str, body: bytes
    ) -> "_Named":
        """Read the content that the pieces name, and determine the ways of naming that count."""
        ways, handles, images = await _apart(body, partial(_naming, request, pieces))
        most = profile.image.max_count
        room = Room.of(None if most is None else max(0, most - images), self.history.bytes)
        return _Named(await open_named(self.store, handles, profile, owner, room, body), ways)

    async def _weighed(
        self, request: Any, turns: Sequence[FoundTurn], named: "_Named", profile: ModelProfile, body: bytes, owner: str
    ) -> tuple[list[FoundTurn], list[Note]]:
        """Return the turns: recent results in full with handles opened and media only once, older ones with lines."""
        parted = partial(_parted, request, turns, named, profile, self.history, len(body))
        contents, old = await _apart(body, parted)
        notes = [*named.content.notes]
        plain = {piece.where: piece for turn in turns for piece in turn.pieces}
        for piece in old:
            await checkpoint()
            contents[piece.where] = await self._older(plain[piece.where], owner)
            notes += [_stays(piece)] if piece.changed else []
        weighed = [replace(turn, pieces=tuple(contents[piece.where] for piece in turn.pieces)) for turn in turns]
        return weighed, notes

    async def _older(self, piece: Piece, owner: str) -> Piece:
        handles: dict[str, str] = {}
        for found in piece.found:
            try:
                content = pybase64.b64decode(found.data)
                kept = await self.store.put(content, owner=owner, media_type=found.media_type or "")
                handles[found.data] = kept.handle
            except ContentError:
                continue  # too large to be kept: the line names it without a handle
        return _with(piece, older(piece.call.envelope, handles))

    async def _lowered(
        self, request: Any, turn: FoundTurn, profile: ModelProfile, owner: str
    ) -> tuple[RepairedTurn, tuple[Note, ...]]:
        pieces = [piece for piece in turn.pieces if piece.changed or not is_right(piece, profile)]
        if any(piece.into is not None for piece in pieces):
            profile = in_user_message(profile)
        done = await self._assembled([piece.call for piece in pieces if _has_content(piece)], profile, owner)
        written = iter(done.turn.answers)
        answers: list[tuple[Piece, Answer]] = []
        carried: list[tuple[str, Any]] = []
        for piece in pieces:
            if piece.by_reference:
                answer, more = _referring(piece, value_at(request, piece.where), profile, len(carried) + 1)
                answers.append((piece, answer))
                carried += more
            elif _has_content(piece):
                answers.append((piece, next(written)))
        follow_ups, reply = done.turn.follow_ups, done.turn.reply
        return RepairedTurn(tuple(answers), follow_ups, tuple(carried), turn.after, reply), done.notes

    async def _assembled(self, calls: Sequence[Call], profile: ModelProfile, owner: str) -> Assembled:
        runner = EffectRunner(self.store, self.media, self.describer, owner=owner)
        choices = Choices(describes=runner.describes)
        calls = await with_files_fetched(calls, profile, self.files)
        done = await settle_turn(calls, profile, runner, choices)
        turn, told = await with_files_uploaded(done.turn, profile, self.files)
        return replace(done, turn=turn, notes=(*done.notes, *told))


@dataclass(frozen=True)
class _Named:
    """Content that a request names. `captions` are the ways of naming that count besides those that always do."""

    content: NamedContent = field(default_factory=NamedContent)
    captions: frozenset[How] = frozenset()

    def put_into(self, piece: Piece) -> Piece:
        """Return the piece with the content where it is named, or after the text if the text cannot hold it."""
        blocks, after = self.content.blocks, piece.into is not None and piece.where[: len(piece.into)] != piece.into
        envelope = expanded(piece.call.envelope, blocks, _ways(piece, self.captions), after=after)
        return _with(piece, envelope)


def _ways(piece: Piece, captions: frozenset[How]) -> frozenset[How]:
    return (NAMED if piece.into is None else WHOLE_LINES) | captions


async def _apart(body: bytes, work: Callable[[], ResultT]) -> ResultT:
    """Return the result of pure work on a request: done here for a small one, in a thread for a large one."""
    return work() if len(body) <= _IN_PLACE else await anyio.to_thread.run_sync(work)


def _naming(request: Any, pieces: Sequence[Piece]) -> tuple[frozenset[How], list[str], int]:
    """Return the ways of naming content that count, the handles that are named, and how many images there are."""
    ways = CAPTION if drops_media(request, pieces) else frozenset[How]()
    handles = [handle for piece in pieces for handle in handles_in(piece.call.envelope, _ways(piece, ways))]
    return ways, handles, images_in(request)


def _parted(
    request: Any,
    turns: Sequence[FoundTurn],
    named: _Named,
    profile: ModelProfile,
    history: HistorySettings,
    size: int,
) -> tuple[dict[Where, Piece], list[Piece]]:
    """Return the pieces of recent results by their places, with media only once, and those of older results."""
    opened = [named.put_into(piece) for turn in turns for piece in turn.pieces]
    cut = _cut(request, opened, profile, history, size)
    with_media = sorted({piece.result for piece in opened if piece.found})
    oldest = with_media[cut] if cut < len(with_media) else (with_media[-1] + 1 if with_media else 0)
    kept = [piece for piece in opened if piece.result >= oldest]
    contents = {piece.where: _with(piece, envelope) for piece, envelope in zip(kept, once(kept), strict=True)}
    return contents, [piece for piece in opened if piece.result < oldest]


def _stays(piece: Piece) -> Note:
    return Note(kind="named", text=f"content named in {_place(piece)} left out: more than the request may hold")


def _read(body: bytes, form: RequestApi, texts_of: str | None) -> tuple[Any, Sequence[FoundTurn]]:
    try:
        request: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None, ()  # the API says what is wrong with it
    if is_deep(request):
        return None, ()  # forwarded unchanged: it could not be written again reliably
    if not is_dict(request):
        return request, ()
    results = form.find_results(request)
    return request, in_order(results, find_observations(request, texts_of)) if texts_of else results


def _written(
    body: bytes,
    request: Any,
    turns: Sequence[RepairedTurn],
    splicing: Callable[[], dict[str, Any]],
    notes: tuple[Note, ...],
) -> RepairedRequest:
    spliced = splicing()
    if spliced == request:
        return RepairedRequest(body)
    try:
        text = json.dumps(spliced, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return RepairedRequest(body)  # a number that JSON cannot hold
    changes = tuple(_change(request, piece, answer) for turn in turns for piece, answer in turn.answers)
    try:
        written = text.encode("utf-8")
    except UnicodeEncodeError:
        # A lone surrogate cannot be encoded as UTF-8; escaped, it is sent as it was received.
        written = json.dumps(spliced, separators=(",", ":")).encode("ascii")
    return RepairedRequest(written, changes, notes)


def _change(request: Any, piece: Piece, answer: Answer) -> Change:
    return Change(_place(piece), value_at(request, piece.where), answer.text)


def _place(piece: Piece) -> str:
    return ".".join(str(key) for key in piece.where)


def _cut(request: Any, pieces: Sequence[Piece], profile: ModelProfile, history: HistorySettings, size: int) -> int:
    """Return the index of the first result with media that stays in full."""
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
    """Whether there is something to write, unlike for a line whose handle was not opened."""
    return piece.changed or piece.foreign or has_media(piece.call.envelope)


def _referring(piece: Piece, part: Any, profile: ModelProfile, number: int) -> tuple[Answer, list[tuple[str, Any]]]:
    """Return the words that replace a part without bytes, and the part itself if it may follow."""
    kind = _KINDS.get(part.get("type"), "document")
    label = wording.media_by_reference(kind, number)
    if place_of(kind, profile) == "none":
        return Answer(piece.call, (Words(wording.marker(label, "this model does not take it")),)), []
    caption = wording.whose(label, piece.call.name, piece.call.id)
    return Answer(piece.call, (Words(wording.marker(label, "after the tool results")),)), [(caption, part)]

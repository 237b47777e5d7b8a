"""What is found in a request, and how what it is lowered to is put back: the same for every dialect."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from gateway.core.model.blocks import AudioBlock, Found, ImageBlock, ResourceBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.turn import Answer, Call, FollowUp, Turn
from gateway.core.model_apis.requests.gateway_lines import CAPTION, NAMED, handles_in
from gateway.core.model_apis.requests.result_formats import block_of, envelope_of, has_media, is_exact

Where: TypeAlias = tuple[int | str, ...]
"""The keys and indices that lead to a value in a request."""

Write: TypeAlias = Callable[[Turn], list[dict[str, Any]]]
"""A target's converter, `gateway.core.model_apis.lowering.<target>.write`."""


Native: TypeAlias = Mapping[str, Mapping[str, type]]
"""An API's own parts: by type, the members that hold the content, and what they have to be."""

_OF_MCP = frozenset({"annotations", "_meta", "meta"})
"""Members of MCP's blocks, which APIs refuse on parts that are otherwise their own."""


@dataclass(frozen=True)
class Piece:
    """A part of a tool's result with media in it, or with handles that the gateway wrote.

    `result` counts the results of the whole request. `native`: it is in the API's own form for media already.
    `by_reference`: it names its content by an address or a file's id, and has no bytes. `foreign`: it holds no media,
    but stands beside media that is written anew, in a form that this API does not know. `changed`: its envelope is no
    more what stands in the request. `taken`: the indices, in the list that its turn's `after` leads
    into, of elements that belong to it: they go when it is written anew. `into`: of text outside of results
    (`gateway.core.model_apis.requests.observations`), the message that gets what the text names.
    """

    where: Where
    result: int
    call: Call
    native: bool = False
    by_reference: bool = False
    foreign: bool = False
    changed: bool = False
    taken: tuple[int, ...] = ()
    into: Where | None = None

    @property
    def found(self) -> tuple[Found, ...]:
        """The media in it that can be read."""
        media = (
            block for block in self.call.envelope.blocks if isinstance(block, ImageBlock | AudioBlock | ResourceBlock)
        )
        return tuple(block.found for block in media if block.found is not None)


@dataclass(frozen=True)
class FoundTurn:
    """The pieces in the results of one turn, in order, and where a follow-up to them goes."""

    pieces: tuple[Piece, ...]
    after: Where


@dataclass(frozen=True)
class RepairedTurn:
    """A turn's pieces that are written anew, and what follows its results.

    `carried` are parts that may not stand in a result and go on as they came, each with its caption. `reply` is what
    the assistant says before what follows, if anything.
    """

    answers: tuple[tuple[Piece, Answer], ...]
    follow_ups: tuple[FollowUp, ...]
    carried: tuple[tuple[str, Any], ...]
    after: Where
    reply: str | None = None


@dataclass(frozen=True)
class Dialect:
    """How one model API's requests hold tool results.

    `find` gives the turns with something to look at. `put(holder, key, answer, write)` puts an answer in place of
    `holder[key]`. `follow_up(turn, write)` gives the elements of the list at `after` for what follows a turn.
    """

    find: Callable[[Mapping[str, Any]], tuple[FoundTurn, ...]]
    put: Callable[[Any, Any, Answer, Write], None]
    follow_up: Callable[[RepairedTurn, Write], list[Any]]


def value_at(request: Any, where: Where) -> Any:
    """The value that `where` leads to."""
    for key in where:
        request = request[key]
    return request


def with_copies(value: Any, wheres: Sequence[Where]) -> Any:
    """The value with copies of the lists and objects on these ways; everything else is the very same."""
    if not isinstance(value, list | dict):
        return value
    copied: Any = cast("list[Any]", value).copy() if isinstance(value, list) else dict(cast("dict[Any, Any]", value))
    for key in {where[0] for where in wheres if where}:
        copied[key] = with_copies(copied[key], [where[1:] for where in wheres if where and where[0] == key])
    return copied


@dataclass
class Finder:
    """Collects the pieces of a request, turn by turn."""

    results: int = 0
    turns: list[FoundTurn] = field(default_factory=list[FoundTurn])
    names: dict[str, str] = field(default_factory=dict[str, str])
    _pieces: list[Piece] = field(default_factory=list[Piece])

    def result(self, call_id: Any, name: Any = None) -> Call:
        """A result begins: its call, with no content yet."""
        self.results += 1
        known = call_id if isinstance(call_id, str) and call_id else str(self.results)
        told = name if isinstance(name, str) and name else self.names.get(known, "tool")
        return Call(known, told, Envelope())

    def called(self, call_id: Any, name: Any) -> None:
        """The assistant called a tool."""
        if isinstance(call_id, str) and isinstance(name, str):
            self.names[call_id] = name

    def envelope(
        self,
        where: Where,
        call: Call,
        envelope: Envelope,
        *,
        native: bool = False,
        foreign: bool = False,
        taken: tuple[int, ...] = (),
    ) -> None:
        """A result, or a part of one. It is kept when there is media or a handle in it, or when it is `foreign`."""
        if foreign or has_media(envelope) or handles_in(envelope, NAMED | CAPTION):
            whole = Call(call.id, call.name, envelope)
            self._pieces.append(Piece(where, self.results - 1, whole, native, foreign=foreign, taken=taken))

    def reference(self, where: Where, call: Call, *, is_error: bool) -> None:
        """A part in the API's own form that names its content by an address or a file's id."""
        whole = Call(call.id, call.name, Envelope(is_error=is_error))
        self._pieces.append(Piece(where, self.results - 1, whole, native=True, by_reference=True))

    def end_turn(self, after: Where) -> None:
        """The results of a turn are over."""
        if self._pieces:
            self.turns.append(FoundTurn(tuple(self._pieces), after))
            self._pieces = []


def objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list with their places; nothing for what is no list."""
    if not isinstance(value, list):
        return []
    return [
        (place, cast("dict[str, Any]", item))
        for place, item in enumerate(cast("list[Any]", value))
        if isinstance(item, dict)
    ]


def parts(finder: Finder, where: Where, call: Call, content: Any, native: Native, *, is_error: bool = False) -> None:
    """A result's content: a string, a list of parts, or an object that a client put there."""
    if not isinstance(content, list):
        if content is not None:
            finder.envelope(where, call, envelope_of(content, is_error=is_error))
        return
    read = [(item, _read(item, native, is_error)) for item in cast("list[Any]", content)]
    anew = any(has_media(envelope) and not is_native(item, native) for item, envelope in read if envelope is not None)
    for place, (item, envelope) in enumerate(read):
        at = (*where, place)
        if envelope is not None:
            foreign = anew and not has_media(envelope) and _is_foreign(item, native)
            own = not _is_text(item) and is_native(item, native) and is_exact(item)
            finder.envelope(at, call, envelope, native=own, foreign=foreign)
        elif is_native(item, native) and names_content(item):
            finder.reference(at, call, is_error=is_error)


def _read(item: Any, native: Native, is_error: bool) -> Envelope | None:
    """The envelope of one part; None for a part in the API's own form that has no bytes."""
    if _is_text(item):
        return envelope_of(item["text"], is_error=is_error)
    if is_native(item, native) and (names_content(item) or block_of(item) is None):
        return None
    return envelope_of(item, is_error=is_error)


def _is_text(item: Any) -> bool:
    members = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    kind = members.get("type")
    return isinstance(members.get("text"), str) and isinstance(kind, str) and "text" in kind


def _is_foreign(item: Any, native: Native) -> bool:
    """Whether a part without media is in a known form, but none of this API's."""
    if isinstance(item, str):
        return True
    return block_of(item) is not None and (not is_native(item, native) or not _OF_MCP.isdisjoint(item))


def is_native(part: Any, native: Native) -> bool:
    """Whether a part is in the API's own form, as far as its type and the member that holds its content tell."""
    members = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
    kind = members.get("type")
    holders = native.get(kind) if isinstance(kind, str) else None
    return holders is not None and any(isinstance(members.get(name), form) for name, form in holders.items())


def names_content(part: Mapping[str, Any]) -> bool:
    """Whether a part in an API's own form names its content, in place of holding it."""
    holder = next((part[key] for key in ("source", "image_url", "file", "audio_url", "video_url") if key in part), part)
    if isinstance(holder, str):
        return not holder.lower().startswith("data:")
    members = cast("dict[str, Any]", holder) if isinstance(holder, dict) else {}
    url = members.get("url", members.get("file_url"))
    return isinstance(members.get("file_id"), str) or (isinstance(url, str) and not url.lower().startswith("data:"))


def put_content(holder: Any, key: Any, content: Any, text: str) -> None:
    """New content in place of a result's, or of one of its parts; `text` is the type of a part of text."""
    if isinstance(holder, list):
        new = cast("list[Any]", content) if isinstance(content, list) else [{"type": text, "text": content}]
        holder[key : key + 1] = with_cache_mark(holder[key], new)
    else:
        holder[key] = content


def following(turn: RepairedTurn, write: Write, text: str) -> list[Any]:
    """The parts that follow a turn's results: the media, and what goes on as it came, each with its caption."""
    content: list[Any] = []
    if turn.follow_ups:
        content += write(Turn((), turn.follow_ups))[-1]["content"]
    for caption, part in turn.carried:
        content += [{"type": text, "text": caption}, part]
    return content


def with_cache_mark(old: Any, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new parts, the last of which ends a cached prefix if the old one did (`cache_control`)."""
    mark = cast("dict[str, Any]", old).get("cache_control") if isinstance(old, dict) else None
    return [*new[:-1], {**new[-1], "cache_control": mark}] if mark is not None and new else new

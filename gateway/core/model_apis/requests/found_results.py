"""Tool results found in a request to any model API: the pieces to examine, turn by turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from gateway.core.model.api_media import media_near
from gateway.core.model.blocks import AudioBlock, Found, ImageBlock, ResourceBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_values import as_object, is_list
from gateway.core.model.turn import Answer, Call, FollowUp
from gateway.core.model_apis.requests.find_lines import CAPTION, NAMED, handles_in
from gateway.core.model_apis.requests.result_formats import block_of, envelope_of, has_media, is_exact

Where: TypeAlias = tuple[int | str, ...]
"""The keys and indices that lead to a value in a request."""

Native: TypeAlias = Mapping[str, Mapping[str, type]]
"""An API's own parts: for each type, the members that hold the content, and their Python types."""

_OF_MCP = frozenset({"annotations", "_meta", "meta"})
"""Members of MCP's blocks, which APIs refuse on parts that are otherwise in their own form."""


@dataclass(frozen=True)
class Piece:
    """A part of a tool's result that contains media, or handles that the gateway wrote.

    `result` numbers the results across the whole request. `native`: it is in the API's own form for media already.
    `by_reference`: it names its content by an address or a file's id, and has no bytes. `foreign`: it holds no media,
    but is beside media that is rewritten, in a form that this API does not know. `changed`: its envelope differs from
    the part in the request. `taken`: indices of elements that belong to it, in the list that its turn's `after` leads
    into; they are removed when it is rewritten. `into`: for text outside of results
    (`gateway.core.model_apis.requests.observations`), the message that gets the content that the text names.
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
        """The readable media in the piece."""
        media = (
            block for block in self.call.envelope.blocks if isinstance(block, ImageBlock | AudioBlock | ResourceBlock)
        )
        return tuple(block.found for block in media if block.found is not None)


@dataclass(frozen=True)
class FoundTurn:
    """The pieces in the results of one turn, in order, and the place for a follow-up to them."""

    pieces: tuple[Piece, ...]
    after: Where


@dataclass(frozen=True)
class RepairedTurn:
    """The pieces of a turn that are rewritten, and the parts that follow its results.

    `carried` are parts that are not allowed in a result and are passed on unchanged, each with its caption. `reply` is
    a message of the assistant before what follows, if any.
    """

    answers: tuple[tuple[Piece, Answer], ...]
    follow_ups: tuple[FollowUp, ...]
    carried: tuple[tuple[str, Any], ...]
    after: Where
    reply: str | None = None


@dataclass
class Finder:
    """Collects the pieces of a request, turn by turn."""

    results: int = 0
    turns: list[FoundTurn] = field(default_factory=list[FoundTurn])
    names: dict[str, str] = field(default_factory=dict[str, str])
    _pieces: list[Piece] = field(default_factory=list[Piece])

    def result(self, call_id: Any, name: Any = None) -> Call:
        """Begin a result: return its call, with no content yet."""
        self.results += 1
        known = call_id if isinstance(call_id, str) and call_id else str(self.results)
        tool_name = name if isinstance(name, str) and name else self.names.get(known, "tool")
        return Call(known, tool_name, Envelope())

    def called(self, call_id: Any, name: Any) -> None:
        """Register a call of a tool by the assistant."""
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
        """Add a result, or a part of one. It is kept if it has media or a handle in it, or is `foreign`."""
        if foreign or has_media(envelope) or handles_in(envelope, NAMED | CAPTION):
            whole = Call(call.id, call.name, envelope)
            self._pieces.append(Piece(where, self.results - 1, whole, native, foreign=foreign, taken=taken))

    def reference(self, where: Where, call: Call, *, is_error: bool) -> None:
        """Add a part in the API's own form that names its content by an address or a file's id."""
        whole = Call(call.id, call.name, Envelope(is_error=is_error))
        self._pieces.append(Piece(where, self.results - 1, whole, native=True, by_reference=True))

    def parts(self, where: Where, call: Call, content: Any, native: Native, *, is_error: bool = False) -> None:
        """Add the content of a result: a string, a list of parts, or an object that a client put there."""
        if not is_list(content):
            if content is not None:
                self.envelope(where, call, envelope_of(content, is_error=is_error))
            return
        read = [(item, _read(item, native, is_error)) for item in content]
        is_rewritten = any(
            has_media(envelope) and not is_native(item, native) for item, envelope in read if envelope is not None
        )
        for place, (item, envelope) in enumerate(read):
            at = (*where, place)
            if envelope is not None:
                foreign = is_rewritten and not has_media(envelope) and _is_foreign(item, native)
                own = not _is_text(item) and is_native(item, native) and is_exact(item)
                self.envelope(at, call, envelope, native=own, foreign=foreign)
            elif is_native(item, native) and names_content(item):
                self.reference(at, call, is_error=is_error)

    def end_turn(self, after: Where) -> None:
        """End the results of a turn."""
        if self._pieces:
            self.turns.append(FoundTurn(tuple(self._pieces), after))
            self._pieces = []


def _read(item: Any, native: Native, is_error: bool) -> Envelope | None:
    """Read the envelope of one part; None for a part in the API's own form that has no bytes."""
    if _is_text(item):
        return envelope_of(item["text"], is_error=is_error)
    if is_native(item, native) and (names_content(item) or block_of(item) is None):
        return None
    return envelope_of(item, is_error=is_error)


def _is_text(item: Any) -> bool:
    members = as_object(item)
    kind = members.get("type")
    return isinstance(members.get("text"), str) and isinstance(kind, str) and "text" in kind


def _is_foreign(item: Any, native: Native) -> bool:
    """Whether a part without media is in a known form that this API does not have."""
    if isinstance(item, str):
        return True
    return block_of(item) is not None and (not is_native(item, native) or not _OF_MCP.isdisjoint(item))


def is_native(part: Any, native: Native) -> bool:
    """Whether a part is in the API's own form, judged by its type and the member that holds its content."""
    members = as_object(part)
    kind = members.get("type")
    holders = native.get(kind) if isinstance(kind, str) else None
    return holders is not None and any(isinstance(members.get(name), form) for name, form in holders.items())


def names_content(part: Mapping[str, Any]) -> bool:
    """Whether a part in an API's own form names its content instead of holding it."""
    holder = next((part[key] for key in ("source", "image_url", "file", "audio_url", "video_url") if key in part), part)
    if isinstance(holder, str):
        return not holder.lower().startswith("data:")
    members = as_object(holder)
    url = members.get("url", members.get("file_url"))
    return isinstance(members.get("file_id"), str) or (isinstance(url, str) and not url.lower().startswith("data:"))


def drops_media(request: Mapping[str, Any], pieces: Sequence[Piece]) -> bool:
    """Whether there are captions, but no media near any of them, that is, up to the assistant's next message.

    A client that shows the media of one caption shows media; if there is none near other captions, it was removed on
    purpose.
    """
    captioned = [piece for piece in pieces if handles_in(piece.call.envelope, CAPTION)]
    if not captioned:
        return False
    messages: Any = request.get(str(captioned[0].where[0]))
    if not is_list(messages):
        return True  # all of the input is one string
    showing = {_index(piece) for piece in pieces if has_media(piece.call.envelope)}
    shown = media_near(messages, showing)
    return not any(shown[_index(piece)] for piece in captioned)


def _index(piece: Piece) -> int:
    place = piece.into or piece.where
    return cast("int", place[1]) if len(place) > 1 else 0

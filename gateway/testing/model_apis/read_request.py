"""What every stand-in reads a request into: messages with their text, calls, answers and media."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from gateway.core.model.media_types import inspect, normalise

Kind: TypeAlias = Literal["image", "audio", "document", "video"]
_DATA_URI = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


@dataclass(frozen=True)
class Seen:
    """One piece of media that the model gets: its kind, the type of its bytes, and the bytes."""

    kind: Kind
    media_type: str
    content: bytes


@dataclass(frozen=True)
class Media:
    """Media as it stands in a request: the type it is said to have, and its base64.

    `shown` is whether the model gets it: some APIs take an image where their model never sees it.
    """

    where: str
    kind: Kind
    media_type: str | None
    data: str
    shown: bool = True

    @cached_property
    def content(self) -> bytes | None:
        """The bytes; None where `data` is not strict base64 (RFC 4648, padded, without line breaks), or is empty."""
        try:
            return base64.b64decode(self.data, validate=True) or None
        except (binascii.Error, ValueError):
            return None

    @cached_property
    def true_type(self) -> str | None:
        """The media type of the bytes, where they tell it."""
        return inspect(self.content or b"").media_type

    @property
    def seen(self) -> Seen | None:
        """What the model gets of it, if anything."""
        if self.content is None or not self.shown:
            return None
        return Seen(self.kind, self.true_type or normalise(self.media_type) or "", self.content)


class Ref(NamedTuple):
    """A tool call, or the answer to one. An API without ids leaves the id empty."""

    id: str
    name: str


@dataclass(frozen=True)
class Message:
    """One message (or item, content, step) of a request, wherever each API keeps these parts."""

    where: str
    role: str
    text: str = ""
    calls: tuple[Ref, ...] = ()
    answers: tuple[Ref, ...] = ()
    media: tuple[Media, ...] = ()
    raw: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Conversation:
    """A request whose shape is right, read."""

    request: Mapping[str, Any]
    messages: Sequence[Message]
    tools: Sequence[str]

    @property
    def model(self) -> str:
        """The model that is asked for; empty where the request does not say."""
        return str(self.request.get("model") or "")

    @property
    def media(self) -> Iterator[Media]:
        """All media, in order."""
        return (one for message in self.messages for one in message.media)


Rule: TypeAlias = Callable[[Conversation], Iterable[str]]
"""Why the API refuses the request: one sentence for each place; none if the rule is kept."""


@dataclass(frozen=True)
class Dialect:
    """A model API: the shape of its requests, how to read them, and the rules that its types do not say.

    `tools` gives the names of the offered tools. `before` makes one form of a request that may be written in several.
    """

    shape: Any
    read: Callable[[Mapping[str, Any]], Sequence[Message]]
    rules: tuple[Rule, ...]
    tools: Callable[[Mapping[str, Any]], Sequence[str]]
    before: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict


def from_uri(where: str, kind: Kind, uri: str, *, shown: bool = True) -> tuple[Media, ...]:
    """The media of a data URI; nothing for a web address, since its bytes are elsewhere."""
    if uri.startswith(("https://", "http://", "gs://")):
        return ()
    found = _DATA_URI.fullmatch(uri)
    return (Media(where, kind, found[1] or None, found[2], shown) if found else Media(where, kind, None, uri, shown),)


def lines(texts: Iterable[Any]) -> str:
    """The texts that are there, one below the other."""
    return "\n".join(text for text in texts if isinstance(text, str) and text)

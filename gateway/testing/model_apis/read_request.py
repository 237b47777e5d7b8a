"""The common form into which stand-ins parse requests: messages with their text, calls, answers and media."""

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
    """Media as given in a request: its declared type, and its base64.

    `shown` is whether the model gets it: some APIs accept images in places that their model never sees.
    """

    where: str
    kind: Kind
    media_type: str | None
    data: str
    shown: bool = True

    @cached_property
    def content(self) -> bytes | None:
        """The bytes; None if `data` is empty or not strict base64 (RFC 4648, padded, without line breaks)."""
        try:
            return base64.b64decode(self.data, validate=True) or None
        except (binascii.Error, ValueError):
            return None

    @cached_property
    def true_type(self) -> str | None:
        """The media type of the bytes, if it can be detected."""
        return inspect(self.content or b"").media_type

    @property
    def seen(self) -> Seen | None:
        """The media as the model gets it, or None."""
        if self.content is None or not self.shown:
            return None
        return Seen(self.kind, self.true_type or normalise(self.media_type) or "", self.content)


class Ref(NamedTuple):
    """A tool call, or the answer to one. An API without ids leaves the id empty."""

    id: str
    name: str


@dataclass(frozen=True)
class Message:
    """One message (or item, content, step) of a request, in the same form for all APIs."""

    where: str
    role: str
    text: str = ""
    calls: tuple[Ref, ...] = ()
    answers: tuple[Ref, ...] = ()
    media: tuple[Media, ...] = ()
    raw: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Conversation:
    """A parsed request of valid shape."""

    request: Mapping[str, Any]
    messages: Sequence[Message]
    tools: Sequence[str]

    @property
    def model(self) -> str:
        """The requested model; empty if the request does not name one."""
        return str(self.request.get("model") or "")

    @property
    def media(self) -> Iterator[Media]:
        """All media, in order."""
        return (one for message in self.messages for one in message.media)


Rule: TypeAlias = Callable[[Conversation], Iterable[str]]
"""Returns why the API refuses the request, one sentence for each place; empty if the rule is kept."""


@dataclass(frozen=True)
class Dialect:
    """A model API: the shape of its requests, a function to parse them, and rules that are not in its types.

    `tools` returns the names of the offered tools. `before` normalises requests that may be written in several forms.
    """

    shape: Any
    read: Callable[[Mapping[str, Any]], Sequence[Message]]
    rules: tuple[Rule, ...]
    tools: Callable[[Mapping[str, Any]], Sequence[str]]
    before: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict


def from_uri(where: str, kind: Kind, uri: str, *, shown: bool = True) -> tuple[Media, ...]:
    """Return the media of a data URI; none for a web address, because its bytes are elsewhere."""
    if uri.startswith(("https://", "http://", "gs://")):
        return ()
    found = _DATA_URI.fullmatch(uri)
    return (Media(where, kind, found[1] or None, found[2], shown) if found else Media(where, kind, None, uri, shown),)


def lines(texts: Iterable[Any]) -> str:
    """Join the texts that are not empty with line breaks."""
    return "\n".join(text for text in texts if isinstance(text, str) and text)

"""A turn: the results of all calls of one assistant's message, on their way to a model API."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from gateway.core.model.envelope import Envelope

MediaKind = Literal["image", "audio", "document", "video"]

DETAIL_KEY = "mcp-gateway/detail"
"""The key of an image block's `_meta` that holds its `detail`."""
DETAILS = ("low", "high", "auto", "original")
"""https://platform.openai.com/docs/guides/images-vision, "Specify image input detail level"."""


@dataclass(frozen=True)
class Call:
    """One call and its result. `id` is the API's id of the call, `name` the tool's name as the model knows it."""

    id: str
    name: str
    envelope: Envelope
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Words:
    """Text in a tool's message."""

    text: str


@dataclass(frozen=True)
class Ref:
    """Content that the API gets by itself: a `file` that its provider keeps, by id, or whatever is at a `url`."""

    kind: Literal["file", "url"]
    value: str


@dataclass(frozen=True)
class Media:
    """Content with bytes: base64 `data` of `media_type`. `label` names it within the turn: `image 2`.

    `title` is what the upstream called it, where it did (the end of a resource's uri). With a `ref` there is no data.
    """

    kind: MediaKind
    media_type: str
    data: str
    label: str
    title: str | None = None
    ref: Ref | None = None
    detail: str | None = None
    """How closely OpenAI's APIs are asked to look at an image: `low`, `high`, `auto` or `original`; None: not said."""

    @property
    def url(self) -> str:
        """Where the content is: the address that it has, or a `data:` URI (RFC 2397)."""
        return self.ref.value if self.ref else f"data:{self.media_type};base64,{self.data}"

    @property
    def file_id(self) -> str | None:
        """The provider's id of the file that this is, if it is one."""
        return self.ref.value if self.ref and self.ref.kind == "file" else None


Part: TypeAlias = Words | Media


@dataclass(frozen=True)
class Answer:
    """What goes into one call's tool message, in order; never empty. `is_error`: the API's own flag is to be set.

    `raw` is the content in the API's own shape, to be written as it is in place of the parts.
    """

    call: Call
    parts: tuple[Part, ...]
    is_error: bool = False
    raw: Any = None

    @property
    def text(self) -> str:
        """All text in order; a marker where media stands."""
        return "\n".join(part.text if isinstance(part, Words) else f"[{part.label}]" for part in self.parts)

    def content(self, write_part: Callable[[Part], Any]) -> Any:
        """The content for an API that takes a string or a list of parts: text alone as a string, `raw` as it is."""
        if self.raw is not None:
            return self.raw
        return [write_part(part) for part in self.parts] if self.media else self.text

    @property
    def media(self) -> tuple[Media, ...]:
        """The media in the tool's message, in order."""
        return tuple(part for part in self.parts if isinstance(part, Media))


@dataclass(frozen=True)
class FollowUp:
    """Media that goes into the one message after all tool messages, with the words that say whose it is."""

    caption: str
    media: Media


@dataclass(frozen=True)
class Turn:
    """All answers in the order of the calls, and what follows them.

    `reply` is what the assistant says between the two, for a model whose template wants that.
    """

    answers: tuple[Answer, ...]
    follow_ups: tuple[FollowUp, ...] = ()
    reply: str | None = None

    @property
    def follow_up_parts(self) -> list[Part]:
        """What follows the answers, in order: each piece of media behind its caption."""
        return [part for follow_up in self.follow_ups for part in (Words(follow_up.caption), follow_up.media)]


def reply_messages(words: str | None) -> list[dict[str, Any]]:
    """The assistant's message that says `words`, in the form that chat APIs share; none without words."""
    return [{"role": "assistant", "content": words}] if words else []

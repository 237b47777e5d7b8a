"""A turn: the results of all calls of one assistant message, sent to a model API together."""

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
    """Content that the API fetches itself: a `file` that its provider keeps, by id, or content at a `url`."""

    kind: Literal["file", "url"]
    value: str


@dataclass(frozen=True)
class Media:
    """Content with bytes: base64 `data` of `media_type`. `label` names it within the turn: `image 2`.

    `title` is the upstream's name for it, if any (the end of a resource's URI). With a `ref` there is no data.
    """

    kind: MediaKind
    media_type: str
    data: str
    label: str
    title: str | None = None
    ref: Ref | None = None
    detail: str | None = None
    """The detail in which OpenAI's APIs look at an image: `low`, `high`, `auto` or `original`; None if unspecified."""

    @property
    def url(self) -> str:
        """The content's own address, or a `data:` URI (RFC 2397)."""
        return self.ref.value if self.ref else f"data:{self.media_type};base64,{self.data}"

    @property
    def file_id(self) -> str | None:
        """The provider's id of the file, if the content is a file that the provider keeps."""
        return self.ref.value if self.ref and self.ref.kind == "file" else None


Part: TypeAlias = Words | Media


@dataclass(frozen=True)
class Answer:
    """The content of one call's tool message, in order; never empty. `is_error`: the API's own error flag is set.

    `raw` is content in the API's own format, written as it is in place of the parts.
    """

    call: Call
    parts: tuple[Part, ...]
    is_error: bool = False
    raw: Any = None

    @property
    def text(self) -> str:
        """All text in order, with a marker in place of each piece of media."""
        return "\n".join(part.text if isinstance(part, Words) else f"[{part.label}]" for part in self.parts)

    def content(self, write_part: Callable[[Part], Any]) -> Any:
        """Return the content for an API that takes parts or a string: `raw` if there is any, text alone as a string."""
        if self.raw is not None:
            return self.raw
        return [write_part(part) for part in self.parts] if self.media else self.text

    @property
    def media(self) -> tuple[Media, ...]:
        """The media in the tool's message, in order."""
        return tuple(part for part in self.parts if isinstance(part, Media))


@dataclass(frozen=True)
class FollowUp:
    """Media in the one message after all tool messages, with a caption that says which result it belongs to."""

    caption: str
    media: Media


@dataclass(frozen=True)
class Turn:
    """All answers in the order of the calls, and the media that follows them.

    `reply` is a message of the assistant between the two, for models whose template requires one.
    """

    answers: tuple[Answer, ...]
    follow_ups: tuple[FollowUp, ...] = ()
    reply: str | None = None

    @property
    def follow_up_parts(self) -> list[Part]:
        """The parts of the message after the answers, in order: each piece of media after its caption."""
        return [part for follow_up in self.follow_ups for part in (Words(follow_up.caption), follow_up.media)]


def reply_messages(words: str | None) -> list[dict[str, Any]]:
    """Return the assistant's message with these words, in the form that chat APIs share; empty without words."""
    return [{"role": "assistant", "content": words}] if words else []

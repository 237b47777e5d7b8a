"""What a simulated model gets of one tool result, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.pictures import Picture, look

Where = Literal["in the result", "beside it", "next turn"]
"""Where media reaches the model: inside the tool result, in a message or part that follows it at once, or only with
the user's next message."""

Form = Literal["text", "json", "structured", "file", "placeholder", "error", "frame"]
"""How a text came about: `text` that the server wrote; a block or result dumped as `json`; `structured` content as
JSON; the path of a `file` that the host saved; a `placeholder` for content that is lost; an `error`; or the `frame` of
words that the host puts around results of its own accord."""


@dataclass(frozen=True)
class SeenText:
    """Text, as the model reads it."""

    text: str
    form: Form = "text"


@dataclass(frozen=True)
class SeenImage:
    """An image sent as one: its base64, the type under which it is sent, and its size in pixels for the model.

    `pixels` is None where the bytes are not a raster image that can be decoded. `note` says what the host does to it;
    the data stays as it came, since only its size changes.
    """

    data: str
    media_type: str
    pixels: tuple[int, int] | None
    where: Where = "in the result"
    note: str | None = None

    @property
    def picture(self) -> Picture | None:
        """The decoded image, or None where there is nothing that a model API would take: broken bytes, or a vector
        image, or a media type that is not that of the bytes."""
        picture = look(self.data)
        return picture if picture and picture.media_type == self.media_type else None


@dataclass(frozen=True)
class SeenAudio:
    """Sound sent as sound."""

    data: str
    media_type: str
    where: Where = "in the result"


@dataclass(frozen=True)
class SeenDocument:
    """A document (PDF) sent as one."""

    data: str
    media_type: str
    where: Where = "in the result"


SeenPart: TypeAlias = SeenText | SeenImage | SeenAudio | SeenDocument


@dataclass(frozen=True)
class Seen:
    """All that reaches the model, in order.

    `error` is set where the host itself failed on the result, and says why; the tool's own errors are no such failure.
    `flagged`: whether the host tells its model that the call failed.
    """

    parts: tuple[SeenPart, ...] = ()
    error: str | None = None
    flagged: bool = False

    @property
    def text(self) -> str:
        """All text, one part to a line."""
        return "\n".join(self.texts())

    def texts(self, *forms: Form) -> tuple[str, ...]:
        """The texts of these forms, in order; of all forms when none is given."""
        return tuple(p.text for p in self.parts if isinstance(p, SeenText) and (not forms or p.form in forms))

    @property
    def images(self) -> tuple[SeenImage, ...]:
        """The images, in order."""
        return tuple(part for part in self.parts if isinstance(part, SeenImage))

    @property
    def base64_leak(self) -> int:
        """How many characters of base64 the model has to read as text."""
        return sum(len(run) for text in self.texts() for run in base64_runs(text))


def failed_result(error: str, *, flagged: bool = True) -> Seen:
    """The host gave up on the result, and tells its model why."""
    return Seen((SeenText(error, "error"),), error=error, flagged=flagged)


def as_labelled(data: str, media_type: str, where: Where = "in the result") -> SeenImage:
    """An image that a host sends on as it came: unchanged, unchecked, under the type that it was given."""
    picture = look(data)
    return SeenImage(data, media_type, picture and picture.pixels, where)


def texts_first(parts: Sequence[SeenPart]) -> tuple[SeenPart, ...]:
    """The texts first, then everything else, each in its order."""
    texts = [part for part in parts if isinstance(part, SeenText)]
    return (*texts, *(part for part in parts if not isinstance(part, SeenText)))

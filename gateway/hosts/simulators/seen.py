"""The result of a simulation: what a model gets of one tool result, in order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.pictures import Picture, look

Where = Literal["in the result", "beside it", "next turn"]
"""Where media reaches the model: in the tool result, in a message or part after it, or with the next user message."""

Form = Literal["text", "json", "structured", "file", "placeholder", "error", "frame"]
"""The origin of a text.

`text`: written by the server; `json`: a block or result dumped as JSON; `structured`: structured content as JSON;
`file`: the path of a file that the host saved; `placeholder`: in place of lost content; `error`; `frame`: words that
the host itself puts around results.
"""


@dataclass(frozen=True)
class SeenText:
    """Text that the model reads."""

    text: str
    form: Form = "text"


@dataclass(frozen=True)
class SeenImage:
    """An image sent as one: its base64, its declared type, and its size in pixels for the model.

    `pixels` is None if the bytes are not a decodable raster image. `note` says what the host does to it; the data is
    unchanged, since only its size differs.
    """

    data: str
    media_type: str
    pixels: tuple[int, int] | None
    where: Where = "in the result"
    note: str | None = None

    @property
    def picture(self) -> Picture | None:
        """The decoded image; None if no model API would accept it: broken bytes, a vector image, a wrong media type."""
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
    """Everything that reaches the model, in order.

    `error` is set if the host itself failed on the result, and says why; the tool's own errors do not count. `flagged`:
    whether the host tells its model that the call failed.
    """

    parts: tuple[SeenPart, ...] = ()
    error: str | None = None
    flagged: bool = False

    @property
    def text(self) -> str:
        """All text, one part per line."""
        return "\n".join(self.texts())

    def texts(self, *forms: Form) -> tuple[str, ...]:
        """Return the texts of these forms, in order; of all forms if none is given."""
        return tuple(p.text for p in self.parts if isinstance(p, SeenText) and (not forms or p.form in forms))

    @property
    def images(self) -> tuple[SeenImage, ...]:
        """The images, in order."""
        return tuple(part for part in self.parts if isinstance(part, SeenImage))

    @property
    def base64_leak(self) -> int:
        """The number of characters of base64 that the model has to read as text."""
        return sum(len(run) for text in self.texts() for run in base64_runs(text))


def failed_result(error: str, *, flagged: bool = True) -> Seen:
    """Return the outcome if the host fails on the result and tells its model why."""
    return Seen((SeenText(error, "error"),), error=error, flagged=flagged)


def as_labelled(data: str, media_type: str, where: Where = "in the result") -> SeenImage:
    """Return an image that a host passes on unchanged and unchecked, under its declared type."""
    picture = look(data)
    return SeenImage(data, media_type, picture and picture.pixels, where)


def texts_first(parts: Sequence[SeenPart]) -> tuple[SeenPart, ...]:
    """Return the texts first, then everything else, each in its order."""
    texts = [part for part in parts if isinstance(part, SeenText)]
    return (*texts, *(part for part in parts if not isinstance(part, SeenText)))

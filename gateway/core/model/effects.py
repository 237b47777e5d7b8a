"""Effects that decisions ask for, and their outcomes. Both are plain values; effects are performed elsewhere.

An effect has a `key` that is unique within one result; its outcome is filed under that key. A failed effect is an
outcome like any other, so that falling back is a rule like any other.

All work on media is requested as effects, for results and otherwise, so `MediaWork.run` is the one function that
counting and caching wrap.
"""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from gateway.core.model.media_types import PixelSize


@dataclass(frozen=True)
class ImageTarget:
    """Requirements for an image: one of `types`, a longer edge up to `max_edge` pixels, `max_bytes` decoded at most."""

    types: tuple[str, ...] = ("image/png", "image/jpeg")
    max_edge: int | None = None
    max_bytes: int | None = None
    animation: bool = True
    """Whether an animation is kept if its type is accepted; otherwise its first frame is shown."""


@dataclass(frozen=True)
class AudioTarget:
    """Requirements for sound: one of `types` (empty: any), at most `max_bytes` decoded and `max_seconds` long."""

    types: tuple[str, ...] = ("audio/wav", "audio/mpeg")
    max_bytes: int | None = None
    max_seconds: int | None = None


@dataclass(frozen=True)
class Crop:
    """A part of an image, in pixels of the original: left, top, width, height."""

    left: int
    top: int
    width: int
    height: int


MediaOutcomeT = TypeVar("MediaOutcomeT", covariant=True)


@dataclass(frozen=True)
class MediaEffect(Generic[MediaOutcomeT]):
    """Work on media whose outcome is a `MediaOutcomeT`.

    `data` is base64, as in results, or the bytes themselves if they are available, so that nothing is encoded only to
    be decoded again.
    """

    key: str
    data: str | bytes


@dataclass(frozen=True)
class FitImage(MediaEffect["Fitted"]):
    """Make the image (`data` of `media_type`), or what is in `crop`, fit `target`: scale down, convert, rasterize."""

    media_type: str
    target: ImageTarget
    crop: Crop | None = None


@dataclass(frozen=True)
class Keep:
    """Store content under a handle. `data` is base64, or plain text if `is_text`."""

    key: str
    data: str
    is_text: bool
    media_type: str
    name: str | None = None


@dataclass(frozen=True)
class ReadDocument(MediaEffect["DocumentRead"]):
    """Read a PDF (`data`): its page count, and the text of its first `max_pages`, `max_chars` at most."""

    max_pages: int
    max_chars: int


@dataclass(frozen=True)
class RenderPages(MediaEffect["Rendered"]):
    """Draw `pages` of a PDF (`data`; the first page is 1), each fitted to `target`."""

    pages: tuple[int, ...]
    target: ImageTarget


@dataclass(frozen=True)
class ConvertAudio(MediaEffect["Converted"]):
    """Make sound (`data` of `media_type`) fit `target`: convert, cut."""

    media_type: str
    target: AudioTarget


@dataclass(frozen=True)
class Probe(MediaEffect["Probed"]):
    """Determine the properties of sound or video (`data` of `media_type`)."""

    media_type: str


@dataclass(frozen=True)
class QueryJson(MediaEffect["JsonFound"]):
    """Ask a JSON text (`data`) with a JMESPath `expression`, for at most `max_chars`."""

    expression: str
    max_chars: int


@dataclass(frozen=True)
class OutlineJson(MediaEffect["JsonOutlined"]):
    """Write the shape of a JSON text (`data`) that is too long to be parsed beside everything else."""


@dataclass(frozen=True)
class Describe:
    """Describe an image or sound (base64 `data` of `media_type`) in words, for a model that cannot see or hear it."""

    key: str
    data: str
    media_type: str


@dataclass(frozen=True)
class ReadLink:
    """Read the resource behind a link of the result from the upstream that returned the link."""

    key: str
    uri: str
    max_bytes: int


@dataclass(frozen=True)
class WriteFile:
    """Write content (base64 `data`) to a file that the host can open."""

    key: str
    data: str
    media_type: str
    name: str | None = None


Effect: TypeAlias = (
    FitImage | Keep | ReadDocument | RenderPages | ConvertAudio | Probe | OutlineJson | Describe | ReadLink | WriteFile
)


@dataclass(frozen=True)
class Fitted:
    """An image that fits: base64 `data` of `media_type`, its size in `pixels`, and its `original` size in pixels.

    `frames` is the number of frames of the original animation if only its first frame is shown; otherwise 1.
    """

    data: str
    media_type: str
    pixels: PixelSize
    original: PixelSize
    frames: int = 1


@dataclass(frozen=True)
class Kept:
    """Stored content: its owner can refer to it by `handle`, and anybody can open it by `url`, if there is one.

    Without a handle, this gateway does not store content.
    """

    handle: str | None
    url: str | None = None


@dataclass(frozen=True)
class DocumentRead:
    """A PDF that was read: its number of `pages`, and the text of the first ones, page by page (empty: no text)."""

    pages: int
    texts: tuple[str, ...]
    title: str | None = None


@dataclass(frozen=True)
class Rendered:
    """Pages of a document as images, in the order asked for. A page that could not be drawn is a `Failed`."""

    images: "tuple[Fitted | Failed, ...]"


@dataclass(frozen=True)
class Converted:
    """Sound that fits: base64 `data` of `media_type`, its length in `seconds`, and its `original` length in seconds."""

    data: str
    media_type: str
    seconds: float
    original: float


@dataclass(frozen=True)
class Probed:
    """The properties of sound or video: `seconds`, the name of its `codec`, `channels`, `rate` in Hz, `pixels`."""

    seconds: float | None = None
    codec: str | None = None
    channels: int | None = None
    rate: int | None = None
    pixels: PixelSize | None = None


@dataclass(frozen=True)
class JsonFound:
    """What a query of a JSON text found: JSON, or rows as a table."""

    text: str


@dataclass(frozen=True)
class JsonOutlined:
    """Shapes of a JSON text, from much to little; none if it is not JSON."""

    shapes: tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """A description in words, and the name of the command, tool or model that it was made `by`."""

    text: str
    by: str


@dataclass(frozen=True)
class LinkRead:
    """The resource behind a link: the `contents` of resources/read as wire JSON."""

    contents: tuple[Any, ...]


@dataclass(frozen=True)
class Written:
    """Content in a file of its own, at an absolute `path` that the host can open."""

    path: str


@dataclass(frozen=True)
class Failed:
    """An effect that failed; `reason` is in words that may be shown to a model."""

    reason: str


Outcome: TypeAlias = (
    Fitted
    | Kept
    | DocumentRead
    | Rendered
    | Converted
    | Probed
    | JsonOutlined
    | Described
    | LinkRead
    | Written
    | Failed
)


class MediaWork(Protocol):
    """The interface for work on media: `gateway.content.media.MediaWorkers`, or a wrapper around it."""

    async def run(self, effect: MediaEffect[MediaOutcomeT]) -> MediaOutcomeT:
        """Return the outcome. Raises MediaError."""
        ...

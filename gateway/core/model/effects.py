"""Effects that decisions want, and the outcomes that come back. Both are plain values; performing is elsewhere.

An effect has a `key` that is unique within one result; its outcome is filed under that key. A failed effect is an
outcome like any other, so that falling back is a rule like any other.

Work on media is asked for with effects alone, within a result and outside of one: `MediaWork.run` is the one function
that counting and remembering wrap.
"""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from gateway.core.model.media_types import PixelSize


@dataclass(frozen=True)
class ImageTarget:
    """What an image has to be: one of `types`, at most `max_edge` pixels on its longer edge and `max_bytes` decoded."""

    types: tuple[str, ...] = ("image/png", "image/jpeg")
    max_edge: int | None = None
    max_bytes: int | None = None
    animation: bool = True
    """Whether an animation is kept, where its type is taken; else its first frame is what is shown."""


@dataclass(frozen=True)
class AudioTarget:
    """What sound has to be: one of `types` (empty: as it is), at most `max_bytes` decoded and `max_seconds` long."""

    types: tuple[str, ...] = ("audio/wav", "audio/mpeg")
    max_bytes: int | None = None
    max_seconds: int | None = None


@dataclass(frozen=True)
class Crop:
    """A part of an image, in pixels of the original: from the left, from the top, width, height."""

    left: int
    top: int
    width: int
    height: int


MediaOutcomeT = TypeVar("MediaOutcomeT", covariant=True)


@dataclass(frozen=True)
class MediaEffect(Generic[MediaOutcomeT]):
    """Work on media whose outcome is a `MediaOutcomeT`.

    `data` is base64, as results have it, or the bytes themselves where they are at hand: nothing is encoded only to be
    decoded again.
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
    """Keep content for later under a handle. `data` is base64, or plain text when `is_text`."""

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
    """What can be said of sound or video (`data` of `media_type`) without showing it."""

    media_type: str


@dataclass(frozen=True)
class Describe:
    """Describe an image or sound (base64 `data` of `media_type`) in words, for who cannot see or hear it."""

    key: str
    data: str
    media_type: str


@dataclass(frozen=True)
class ReadLink:
    """Read the resource that a link of the result leads to, from the upstream that gave the link."""

    key: str
    uri: str
    max_bytes: int


@dataclass(frozen=True)
class WriteFile:
    """Write content (base64 `data`) to a file that the host may open."""

    key: str
    data: str
    media_type: str
    name: str | None = None


Effect: TypeAlias = (
    FitImage | Keep | ReadDocument | RenderPages | ConvertAudio | Probe | Describe | ReadLink | WriteFile
)


@dataclass(frozen=True)
class Fitted:
    """An image that fits: base64 `data` of `media_type`, `pixels` now, `original` pixels before.

    `frames`: of how many frames of an animation it is the first; 1 where nothing was left out.
    """

    data: str
    media_type: str
    pixels: PixelSize
    original: PixelSize
    frames: int = 1


@dataclass(frozen=True)
class Kept:
    """Content that is kept: `handle` names it to its owner, `url` opens it for whoever has it, where there is one.

    Without a handle, there is nothing here that keeps content.
    """

    handle: str | None
    url: str | None = None


@dataclass(frozen=True)
class DocumentRead:
    """A document: how many `pages` it has, and the text of its first ones, one string a page (empty: no text)."""

    pages: int
    texts: tuple[str, ...]
    title: str | None = None


@dataclass(frozen=True)
class Rendered:
    """Pages of a document as images, in the order asked for. A page that could not be drawn is a Failed."""

    images: "tuple[Fitted | Failed, ...]"


@dataclass(frozen=True)
class Converted:
    """Sound that fits: base64 `data` of `media_type`, `seconds` long now, `original` seconds before."""

    data: str
    media_type: str
    seconds: float
    original: float


@dataclass(frozen=True)
class Probed:
    """What is known of sound or video: `seconds`, the name of its `codec`, `channels`, `rate` in Hz, `pixels`."""

    seconds: float | None = None
    codec: str | None = None
    channels: int | None = None
    rate: int | None = None
    pixels: PixelSize | None = None


@dataclass(frozen=True)
class Described:
    """A description in words, and `by` what it was made (a command's, tool's or model's name)."""

    text: str
    by: str


@dataclass(frozen=True)
class LinkRead:
    """What a link leads to: the `contents` of resources/read as wire JSON."""

    contents: tuple[Any, ...]


@dataclass(frozen=True)
class Written:
    """Content in a file of its own: its absolute `path`, as the host may open it."""

    path: str


@dataclass(frozen=True)
class Failed:
    """The effect did not succeed; `reason` in words that may be shown to a model."""

    reason: str


Outcome: TypeAlias = (
    Fitted | Kept | DocumentRead | Rendered | Converted | Probed | Described | LinkRead | Written | Failed
)


class MediaWork(Protocol):
    """Whoever does the work on media: `gateway.content.media.MediaWorkers`, or what stands before it."""

    async def run(self, effect: MediaEffect[MediaOutcomeT]) -> MediaOutcomeT:
        """The outcome. Raises MediaError."""
        ...

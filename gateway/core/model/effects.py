"""Effects that decisions ask for, and their outcomes. Both are plain values; performing effects happens elsewhere.

An effect has a `key` that is unique within one result; its outcome is filed under that key. A failed effect is an
outcome like any other, so that falling back is a rule like any other.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

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


@dataclass(frozen=True)
class FitImage:
    """Make the image (base64 `data` of `media_type`) fit `target`: decode, scale down, convert, rasterize."""

    key: str
    data: str
    media_type: str
    target: ImageTarget


@dataclass(frozen=True)
class Keep:
    """Store content under a handle. `data` is base64, or plain text if `is_text`."""

    key: str
    data: str
    is_text: bool
    media_type: str
    name: str | None = None


@dataclass(frozen=True)
class ReadDocument:
    """Read a PDF (base64 `data`): its page count, and up to `max_chars` of the text of its first `max_pages`."""

    key: str
    data: str
    max_pages: int
    max_chars: int


@dataclass(frozen=True)
class RenderPages:
    """Draw `pages` of a PDF (base64 `data`; pages are counted from 1), each fitted to `target`."""

    key: str
    data: str
    pages: tuple[int, ...]
    target: ImageTarget


@dataclass(frozen=True)
class ConvertAudio:
    """Make sound (base64 `data` of `media_type`) fit `target` by converting and cutting it."""

    key: str
    data: str
    media_type: str
    target: AudioTarget


@dataclass(frozen=True)
class Probe:
    """Find out the length, codec and size of sound or video (base64 `data` of `media_type`)."""

    key: str
    data: str
    media_type: str


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
    FitImage | Keep | ReadDocument | RenderPages | ConvertAudio | Probe | Describe | ReadLink | WriteFile
)


@dataclass(frozen=True)
class Fitted:
    """An image that fits: base64 `data` of `media_type`, its size in `pixels`, and its `original` size in pixels.

    `frames` is the number of frames of the animation that it is the first frame of; 1 if nothing was left out.
    """

    data: str
    media_type: str
    pixels: PixelSize
    original: PixelSize
    frames: int = 1


@dataclass(frozen=True)
class Kept:
    """Stored content: its owner can name it by `handle`, and anybody can open it by `url`, if there is one.

    Without a handle, this gateway keeps no content.
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
    Fitted | Kept | DocumentRead | Rendered | Converted | Probed | Described | LinkRead | Written | Failed
)


class MediaWork(Protocol):
    """The work on media that effects need: `gateway.content.media.MediaWorkers`, or a wrapper around it.

    Every method except `probe` raises MediaError.
    """

    async def fit_image(
        self, content: bytes, media_type: str, target: ImageTarget, crop: Crop | None = None
    ) -> Fitted: ...
    async def read_document(self, content: bytes, max_pages: int, max_chars: int) -> DocumentRead: ...
    async def render_pages(self, content: bytes, pages: tuple[int, ...], target: ImageTarget) -> Rendered: ...
    async def convert_audio(self, content: bytes, media_type: str, target: AudioTarget) -> Converted: ...
    async def probe(self, content: bytes, media_type: str) -> Probed: ...

"""Effects that planning asks for, and the outcomes that come back. Both are plain values; performing is elsewhere.

An effect has a `key` that is unique within one result; its outcome is filed under that key. A failed effect is an
outcome like any other, so that falling back is a rule of planning.
"""

from dataclasses import dataclass
from typing import TypeAlias

from gateway.core.model.media_types import PixelSize


@dataclass(frozen=True)
class ImageTarget:
    """What an image has to be: one of `types`, at most `max_edge` pixels on its longer edge and `max_bytes` decoded."""

    types: tuple[str, ...] = ("image/png", "image/jpeg")
    max_edge: int | None = None
    max_bytes: int | None = None


@dataclass(frozen=True)
class Crop:
    """A part of an image, in pixels of the original: from the left, from the top, width, height."""

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
    """Keep content for later under a handle. `data` is base64, or plain text when `is_text`."""

    key: str
    data: str
    is_text: bool
    media_type: str
    name: str | None = None


Effect: TypeAlias = FitImage | Keep


@dataclass(frozen=True)
class Fitted:
    """An image that fits: base64 `data` of `media_type`, `pixels` now, `original` pixels before."""

    data: str
    media_type: str
    pixels: PixelSize
    original: PixelSize


@dataclass(frozen=True)
class Kept:
    """Content that is kept; `handle` names it to its owner."""

    handle: str


@dataclass(frozen=True)
class Failed:
    """The effect did not succeed; `reason` in words that may be shown to a model."""

    reason: str


Outcome: TypeAlias = Fitted | Kept | Failed

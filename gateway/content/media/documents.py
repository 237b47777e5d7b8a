"""Read and render PDF with pdfium. Runs in a worker, on hostile bytes: pdfium aborts if threads share it."""

import math
import re
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple, cast

import pypdfium2  # pyright: ignore[reportMissingTypeStubs]
from PIL import Image

from gateway.content.media import colours
from gateway.content.media.encode_image import ENCODABLE, LARGEST_EDGE, encode
from gateway.content.media.images import DecodedImage
from gateway.core.model.effects import ImageTarget
from gateway.core.model.media_types import PixelSize
from gateway.errors import MediaError

DOTS_PER_INCH = 200
"""The resolution of a page if the limits permit: print of 6 points is legible."""

LEAST_EDGE, MOST_EDGE = 512, 4_000
"""Bounds for the longer edge of a page in pixels, whatever its size on paper; a target's limit takes precedence."""

_USUAL_EDGE = 2_000
"""The longer edge if the target does not limit it."""

_MOST_PIXELS = 16_000_000
_POINTS_PER_INCH = 72
_MOST_TITLE = 200
_WRONG_PASSWORD = 4
"""FPDF_ERR_PASSWORD of pdfium's fpdfview.h."""

_pdfium = cast(Any, pypdfium2)


class Read(NamedTuple):
    """The number of pages, the texts of the first ones (empty for a page without text), and the title."""

    pages: int
    texts: tuple[str, ...]
    title: str | None


class PageError(MediaError):
    """A problem with one page, not with the document."""


def read_document(content: bytes, max_pages: int, max_chars: int) -> Read:
    """Read the text of the first `max_pages`, up to `max_chars` in all: the last text is cut, later ones are left out.

    Raises MediaError if the document is broken or needs a password. A page that cannot be read has no text.
    """
    with _opened(content) as document:
        count, texts, left = len(document), list[str](), max_chars
        for index in range(min(count, max_pages)):
            if left <= 0:
                break
            text = _text(document, index, left)
            texts.append(text)
            left -= len(text)
        return Read(count, tuple(texts), _title(document))


def render(content: bytes, page: int, target: ImageTarget, max_pixels: int) -> DecodedImage:
    """Render a page (counted from 1) as an image that `target` takes. `original` is the size it was rendered at.

    Raises PageError if the page does not exist or cannot be rendered, and MediaError if the document is broken or
    needs a password.
    """
    types = ENCODABLE & set(target.types)
    if not types:
        raise MediaError(f"it cannot be converted to {' or '.join(target.types) or 'no type'}")
    edge = min(target.max_edge or _USUAL_EDGE, MOST_EDGE, max(LARGEST_EDGE[name] for name in types))
    with _opened(content) as document:
        if not 1 <= page <= len(document):
            raise PageError(f"the document has {len(document):,} pages, but no page {page:,}")
        image = _drawn(document, page - 1, edge, min(max_pixels, _MOST_PIXELS))
    original = PixelSize(*image.size)
    graphic = colours.is_graphic(image)
    encoded = encode(image, "image/png" if graphic else "image/jpeg", target, graphic=graphic)
    return DecodedImage(encoded.content, encoded.media_type, PixelSize(*encoded.size), original)


@contextmanager
def _opened(content: bytes) -> Generator[Any]:
    try:
        document = _pdfium.PdfDocument(content)
    except _pdfium.PdfiumError as error:
        if error.err_code == _WRONG_PASSWORD:
            remedy = "give it without a password"
            raise MediaError("the PDF is encrypted and needs a password", remedy=remedy) from error
        raise MediaError("it begins like a PDF but cannot be read as one") from error
    with closing(document):
        if not len(document):
            raise MediaError("the PDF has no pages")
        yield document


# ---------------------------------------------------------------------------------------------------------------- text


def _text(document: Any, index: int, most: int) -> str:
    try:
        with closing(document[index]) as page, closing(page.get_textpage()) as text:
            return visible_text(text.get_text_bounded())[:most]
    except _pdfium.PdfiumError:
        return ""


_LINE_END = re.compile(r"[ \t]*(?:\r\n|[\r\n\f\v\x85\u2028\u2029])")
_HYPHEN = re.compile(r"[\x02\ufffe]")
"""Characters that pdfium returns for a hyphen at the end of a line."""

_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\uffff\ufeff]")
_EMPTY_LINES = re.compile(r"\n{4,}")


def visible_text(text: str) -> str:
    """Return `text` without control characters, lone surrogates and noncharacters; lines end in a line feed."""
    text = _NO_TEXT.sub("", _HYPHEN.sub("-", _LINE_END.sub("\n", text)))
    return _EMPTY_LINES.sub("\n\n\n", text).strip()


def _title(document: Any) -> str | None:
    try:
        title = document.get_metadata_value("Title")
    except (_pdfium.PdfiumError, UnicodeDecodeError):
        return None
    return " ".join(visible_text(title).split())[:_MOST_TITLE] or None


# ------------------------------------------------------------------------------------------------------------- drawing


def _drawn(document: Any, index: int, edge: int, most_pixels: int) -> Image.Image:
    try:
        if document.get_formtype():
            document.init_forms()
        with closing(document[index]) as page:
            width, height = page.get_size()
            scale = _scale(width, height, edge, most_pixels)
            with closing(page.render(scale=scale, fill_color=(255, 255, 255, 255))) as bitmap:
                return cast(Image.Image, bitmap.to_pil()).convert("RGB")
    except (_pdfium.PdfiumError, ValueError, OverflowError) as error:
        raise PageError(f"page {index + 1:,} cannot be drawn") from error


def _scale(width: float, height: float, edge: int, most_pixels: int) -> float:
    """Return pixels per point for a longer edge of at most `edge` pixels and an area of at most `most_pixels`."""
    longer, area = max(width, height), width * height
    if not (math.isfinite(area) and area > 0):
        raise ValueError("a page without a size")
    wanted = max(LEAST_EDGE, longer * DOTS_PER_INCH / _POINTS_PER_INCH)
    # Slightly below the limits, because each side is rounded up.
    return min((min(wanted, edge) - 0.01) / longer, 0.99 * math.sqrt(most_pixels / area))

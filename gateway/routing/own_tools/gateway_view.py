"""`gateway_view`: show a stored image, whole, scaled or cropped, or a page of a stored document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pybase64

from gateway.content.store import ContentStore, fetch_bytes
from gateway.core.fact_words import page_count, plain, size_words
from gateway.core.model import media_types
from gateway.core.model.effects import Crop, Failed, FitImage, Fitted, ImageTarget, MediaWork, ReadDocument, RenderPages
from gateway.core.model.media_types import PixelSize, SniffedType
from gateway.core.own_names import READ_TOOL
from gateway.core.profiles.profile import Profile
from gateway.errors import InvalidRequest, MediaError
from gateway.routing.own_tools import wording
from gateway.routing.own_tools.arguments import crop_in, handle_in, number_in
from gateway.routing.own_tools.gateway_read import MOST_BYTES, is_text

_AS_THEY_ARE = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Image types that a host is assumed to show if its profile names none."""

_PDF = "application/pdf"
_DRAWN = ("image/png", "image/jpeg")
_LARGEST_EDGE = 2_000
"""Pixels of a page's longer edge if the profile names no limit."""
_LARGE_EDGE = 4_000
"""Pixels of a page's longer edge if only a part of it is shown."""
_MOST_PAGES = 10_000
_MOST_CHARS = 2_000_000
"""Maximum number of characters of a document that are read for the text of one of its pages."""

_AROUND = 2_000
"""Characters of a result that are not the image: its caption, and the JSON around both."""


async def view(
    arguments: Mapping[str, Any], store: ContentStore, media: MediaWork, profile: Profile, *, owner: str
) -> list[dict[str, Any]]:
    """Return the blocks that show a stored image or a page: the image, made to fit the host, and a caption.

    Raises:
        InvalidRequest: the arguments are invalid, or the content is not an image.
        ContentError: the handle is unknown or expired.
        MediaError: the image cannot be decoded or made to fit.
    """
    handle = handle_in(arguments)
    if handle is None:
        raise InvalidRequest("handle is missing", remedy="give the handle that a line in an earlier result names")
    size, crop = number_in(arguments, "size", least=1), crop_in(arguments)
    stored = await store.metadata(handle, owner=owner)
    content = await fetch_bytes(store, handle, owner=owner, limit=MOST_BYTES)
    finding = media_types.inspect(content)
    media_type = finding.media_type or stored.media_type
    if media_type == _PDF:
        page = number_in(arguments, "page", least=1) or 1
        try:
            return await _Page(media, profile, handle, content, page).view(size, crop)
        except MediaError as error:
            raise MediaError(f"{handle} cannot be shown: {error.message}", remedy=error.remedy) from error
    if media_types.family(media_type) != "image":
        known = f"{plain(media_type, 80)}, {size_words(stored.size)}"
        words = f"{handle} is not an image but {known}"
        raise InvalidRequest(words, remedy=_instead(media_type, handle))
    if profile.image.show != "native":
        words = wording.images_not_shown(handle, plain(media_type, 80), finding.size, stored.size)
        return [{"type": "text", "text": words}]
    target = _target(profile, size)
    if not profile.image.types and crop is None and _within(finding, len(content), target):
        caption = wording.shown_whole(handle, finding.size, finding.size)
        return _blocks(pybase64.b64encode_as_string(content), media_type, caption)
    try:
        fitted = await media.run(FitImage(handle, content, media_type, target, crop))
    except MediaError as error:
        raise MediaError(f"{handle} cannot be shown this way: {error.message}", remedy=error.remedy) from error
    return _blocks(fitted.data, fitted.media_type, _caption(handle, fitted, crop))


def _instead(media_type: str, handle: str) -> str:
    """Say what opens content that is not an image."""
    return f"read it with {READ_TOOL}" if is_text(media_type) else wording.elsewhere(handle)


@dataclass(frozen=True)
class _Page:
    """One page of a document to be shown."""

    media: MediaWork
    profile: Profile
    handle: str
    content: bytes
    number: int

    async def view(self, size: int | None, crop: Crop | None) -> list[dict[str, Any]]:
        """Return the page as an image, or as text if the host shows no images."""
        shows_images = self.profile.image.show == "native"
        # Only the number of pages is needed here, so the text of the pages before this one need not be read.
        most = 1 if shows_images else min(self.number, _MOST_PAGES)
        read = await self.media.run(ReadDocument(self.handle, self.content, most, _MOST_CHARS))
        if self.number > read.pages:
            raise InvalidRequest(
                f"page {self.number:,} is after the end", remedy=f"the document has {page_count(read.pages)}"
            )
        if not shows_images:
            text = read.texts[self.number - 1] if self.number <= len(read.texts) else ""
            return [{"type": "text", "text": wording.page_as_text(self.handle, self.number, read.pages, text)}]
        if crop is not None:
            return await self._part(crop, size)
        image = await self._drawn(_target(self.profile, size))
        caption = wording.shown_page(self.handle, self.number, read.pages, image.pixels)
        return _blocks(image.data, image.media_type, caption)

    async def _part(self, crop: Crop, size: int | None) -> list[dict[str, Any]]:
        """Return a part of the page, drawn large first. Coordinates are those of the page as shown whole."""
        whole = await self._drawn(_target(self.profile, None))
        large = await self._drawn(ImageTarget(("image/png",), _LARGE_EDGE))
        factor = large.pixels.width / whole.pixels.width
        scaled = Crop(*(round(side * factor) for side in (crop.left, crop.top, crop.width, crop.height)))
        target = _target(self.profile, size)
        image = await self.media.run(FitImage(self.handle, large.data, large.media_type, target, scaled))
        caption = wording.page_part(self.handle, self.number, crop, whole.pixels, image.pixels)
        return _blocks(image.data, image.media_type, caption)

    async def _drawn(self, target: ImageTarget) -> Fitted:
        types = tuple(kind for kind in target.types if kind in _DRAWN) or _DRAWN
        edge = min(target.max_edge or _LARGEST_EDGE, _LARGE_EDGE)
        asked = ImageTarget(types, edge, target.max_bytes)
        rendered = await self.media.run(RenderPages(self.handle, self.content, (self.number,), asked))
        image = rendered.images[0] if rendered.images else Failed("it was not drawn")
        if isinstance(image, Failed):
            raise MediaError(f"page {self.number:,}: {image.reason}")
        return image


def _blocks(data: str, media_type: str, caption: str) -> list[dict[str, Any]]:
    return [{"type": "image", "data": data, "mimeType": media_type}, {"type": "text", "text": caption}]


def _caption(handle: str, fitted: Fitted, crop: Crop | None) -> str:
    if crop is None:
        return wording.shown_whole(handle, fitted.original, fitted.pixels)
    width, height = fitted.original
    part = Crop(crop.left, crop.top, min(crop.width, width - crop.left), min(crop.height, height - crop.top))
    return wording.shown_part(handle, PixelSize(width, height), part, fitted.pixels)


def _target(profile: Profile, size: int | None) -> ImageTarget:
    """The target that shaping would use, so that it changes nothing and the numbers in the caption stay correct."""
    rules, result_chars = profile.image, profile.limits.result_chars
    edges = [edge for edge in (size, rules.max_edge) if edge is not None]
    sizes = [] if rules.max_bytes is None else [rules.max_bytes]
    if result_chars is not None:
        sizes.append(max(1, (result_chars * 9 // 10 - _AROUND) * 3 // 4))
    return ImageTarget(rules.types or _AS_THEY_ARE, min(edges, default=None), min(sizes, default=None))


def _within(finding: SniffedType, byte_size: int, target: ImageTarget) -> bool:
    if target.max_bytes is not None and byte_size > target.max_bytes:
        return False
    return target.max_edge is None or (finding.size is not None and max(finding.size) <= target.max_edge)

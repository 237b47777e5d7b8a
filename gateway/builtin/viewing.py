"""`gateway_view`: a kept image, whole, at a size, or a part of it."""

from collections.abc import Mapping
from typing import Any

import pybase64

from gateway.builtin import wording
from gateway.builtin.arguments import crop_in, handle_in, number_in
from gateway.core.model import media_types
from gateway.core.model.effects import Crop, Fitted, ImageTarget
from gateway.core.model.media_types import Finding, PixelSize
from gateway.core.model.profile import Profile
from gateway.core.wording import READ_TOOL, plain, size_words
from gateway.errors import InvalidRequest, MediaError
from gateway.shaping.shaper import ImageFitter
from gateway.store import ContentStore

_AS_THEY_ARE = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What a host is taken to show when its profile names no types."""

_AROUND = 2_000
"""Characters of a result that are not the image: its caption, and the JSON around both."""


async def view(
    arguments: Mapping[str, Any], store: ContentStore, media: ImageFitter, profile: Profile, *, owner: str
) -> list[dict[str, Any]]:
    """The blocks that show a kept image: made to fit the host already, and a caption that maps coordinates back.

    Raises:
        InvalidRequest: arguments that cannot be meant, or content that is no image.
        ContentError: the handle is unknown or expired.
        MediaError: the image cannot be decoded or made to fit.
    """
    handle = handle_in(arguments)
    if handle is None:
        raise InvalidRequest("handle is missing", remedy="give the handle that a line in an earlier result names")
    size, crop = number_in(arguments, "size", least=1), crop_in(arguments)
    stored = await store.metadata(handle, owner=owner)
    content = await store.read(handle, owner=owner)
    finding = media_types.inspect(content)
    media_type = finding.media_type or stored.media_type
    if media_types.family(media_type) != "image":
        known = f"{plain(media_type, 80)}, {size_words(stored.size)}"
        raise InvalidRequest(f"{handle} is no image but {known}", remedy=f"text is read with {READ_TOOL}")
    if profile.image.show == "line":
        words = wording.images_not_shown(handle, plain(media_type, 80), finding.size, stored.size)
        return [{"type": "text", "text": words}]
    target = _target(profile, size)
    if not profile.image.types and crop is None and _within(finding, len(content), target):
        caption = wording.shown_whole(handle, finding.size, finding.size)
        return _blocks(pybase64.b64encode_as_string(content), media_type, caption)
    try:
        fitted = await media.fit_image(content, media_type, target, crop)
    except MediaError as error:
        raise MediaError(f"{handle} cannot be shown so: {error.message}", remedy=error.remedy) from error
    return _blocks(fitted.data, fitted.media_type, _caption(handle, fitted, crop))


def _blocks(data: str, media_type: str, caption: str) -> list[dict[str, Any]]:
    return [{"type": "image", "data": data, "mimeType": media_type}, {"type": "text", "text": caption}]


def _caption(handle: str, fitted: Fitted, crop: Crop | None) -> str:
    if crop is None:
        return wording.shown_whole(handle, fitted.original, fitted.pixels)
    width, height = fitted.original
    part = Crop(crop.left, crop.top, min(crop.width, width - crop.left), min(crop.height, height - crop.top))
    return wording.shown_part(handle, PixelSize(width, height), part, fitted.pixels)


def _target(profile: Profile, size: int | None) -> ImageTarget:
    """What shaping would ask for, so that it has nothing left to change and the caption's numbers stay true."""
    rules, result_chars = profile.image, profile.limits.result_chars
    edges = [edge for edge in (size, rules.max_edge) if edge is not None]
    sizes = [] if rules.max_bytes is None else [rules.max_bytes]
    if result_chars is not None:
        sizes.append(max(1, (result_chars * 9 // 10 - _AROUND) * 3 // 4))
    return ImageTarget(rules.types or _AS_THEY_ARE, min(edges, default=None), min(sizes, default=None))


def _within(finding: Finding, byte_size: int, target: ImageTarget) -> bool:
    if target.max_bytes is not None and byte_size > target.max_bytes:
        return False
    return target.max_edge is None or (finding.size is not None and max(finding.size) <= target.max_edge)

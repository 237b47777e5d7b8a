"""Fit content for describers: pictures of a suitable size, sound of a suitable length."""

from typing import Protocol

import pybase64

from gateway.core.model.effects import AudioTarget, Converted, Fitted, ImageTarget
from gateway.core.model.media_types import family


class Fitting(Protocol):
    """The part of `gateway.content.media` that describing needs. All methods raise MediaError."""

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget) -> Fitted: ...
    async def convert_audio(self, content: bytes, media_type: str, target: AudioTarget) -> Converted: ...


async def fit_described(
    media: Fitting, content: bytes, media_type: str, image: ImageTarget, audio: AudioTarget
) -> tuple[str, str]:
    """Return the content as base64 in a form that one of the targets takes, and its type.

    Raises:
        MediaError: the content cannot be made to fit.
    """
    match family(media_type):
        case "image":
            fitted = await media.fit_image(content, media_type, image)
            return fitted.data, fitted.media_type
        case "audio":
            converted = await media.convert_audio(content, media_type, audio)
            return converted.data, converted.media_type
        case _:
            return pybase64.b64encode_as_string(content), media_type

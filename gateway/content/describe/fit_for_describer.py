"""Content in a form that describers take: a picture that is no larger than they look at, sound that is not too long."""

from typing import Protocol

import pybase64

from gateway.core.model.effects import AudioTarget, Converted, Fitted, ImageTarget
from gateway.core.model.media_types import family


class Fitting(Protocol):
    """What describing needs of `gateway.content.media`. All raise MediaError."""

    async def fit_image(self, content: bytes, media_type: str, target: ImageTarget) -> Fitted: ...
    async def convert_audio(self, content: bytes, media_type: str, target: AudioTarget) -> Converted: ...


async def fit_described(
    media: Fitting, content: bytes, media_type: str, image: ImageTarget, audio: AudioTarget
) -> tuple[str, str]:
    """The content as base64 that one of the targets takes, and its type then.

    Raises:
        MediaError: it cannot be made to fit.
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

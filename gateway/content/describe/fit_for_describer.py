"""Fit content for describers: pictures of a suitable size, sound of a suitable length."""

import pybase64

from gateway.core.model.effects import AudioTarget, ConvertAudio, FitImage, ImageTarget, MediaWork
from gateway.core.model.media_types import family


async def fit_described(
    media: MediaWork, content: bytes, media_type: str, image: ImageTarget, audio: AudioTarget
) -> tuple[str, str]:
    """Return the content as base64 in a form that one of the targets takes, and its type.

    Raises:
        MediaError: the content cannot be made to fit.
    """
    match family(media_type):
        case "image":
            fitted = await media.run(FitImage("describe", content, media_type, image))
            return fitted.data, fitted.media_type
        case "audio":
            converted = await media.run(ConvertAudio("describe", content, media_type, audio))
            return converted.data, converted.media_type
        case _:
            return pybase64.b64encode_as_string(content), media_type

"""Content in a form that describers take: a picture that is no larger than they look at, sound that is not too long."""

import pybase64

from gateway.core.model.effects import AudioTarget, ConvertAudio, FitImage, ImageTarget, MediaWork
from gateway.core.model.media_types import family


async def fit_described(
    media: MediaWork, content: bytes, media_type: str, image: ImageTarget, audio: AudioTarget
) -> tuple[str, str]:
    """The content as base64 that one of the targets takes, and its type then.

    Raises:
        MediaError: it cannot be made to fit.
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

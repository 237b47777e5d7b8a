"""Fit animations to a target, frame by frame. Runs in a worker, on hostile bytes."""

import math
import time
from io import BytesIO
from typing import Any

from PIL import Image

from gateway.content.media import colours, pillow
from gateway.content.media.encode_image import LARGEST_EDGE, Encoded
from gateway.core.model.effects import ImageTarget

MOST_PIXELS = 50_000_000
"""The maximum number of pixels in all frames together: 100 frames of 800 x 600 are 48 million."""

MOST_SECONDS = 8.0
"""The time limit, after which only the first frame is shown: less than half of a job's time."""

_TYPES = {"image/webp": "WEBP", "image/gif": "GIF"}
_QUALITIES = {"image/webp": (80, 50)}
_TRIES = 3
_LEAST_SCALE = 0.25
_USUAL_DURATION = 100
_MANY_COLOURS = 4_096
_SAMPLE_EDGE = 64


def refit(
    image: Image.Image, media_type: str, target: ImageTarget, turn: Image.Transpose | None, max_pixels: int
) -> Encoded | None:
    """Return the animation in a form that `target` takes. Of `image` only the header has been read.

    It keeps its type if the target takes that, else it becomes WebP or GIF. Return None if that is impossible (no
    suitable type, too many pixels in all, too many bytes even when much smaller, broken after its first frame), which
    leaves the first frame to show.
    """
    taken = [name for name in (media_type, *_TYPES) if name in _TYPES and name in target.types]
    count = int(getattr(image, "n_frames", 1))
    if not taken or count * image.width * image.height > min(MOST_PIXELS, max_pixels):
        return None
    made = taken[0]
    edge = min(LARGEST_EDGE[made], target.max_edge or LARGEST_EDGE[made])
    scale = min(1.0, edge / max(image.size))
    deadline = time.monotonic() + MOST_SECONDS
    try:
        frames, durations, loop = _decoded(image, count, scale, turn, deadline)
        return _within(frames, made, {"duration": durations, **loop}, target.max_bytes or math.inf, deadline)
    except MemoryError:
        raise
    except Exception:  # Decoders raise anything on hostile bytes, and the first frame was decoded successfully.
        return None


def _decoded(
    image: Image.Image, count: int, scale: float, turn: Image.Transpose | None, deadline: float
) -> tuple[list[Image.Image], list[int], dict[str, int]]:
    """Return the upright frames at `scale`, the milliseconds of each, and the loop count if there is one."""
    profile = colours.icc_profile(image)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    frames: list[Image.Image] = []
    durations: list[int] = []
    for index in range(count):
        _check(deadline)
        image.seek(index)
        image.load()
        durations.append(round(float(image.info.get("duration") or _USUAL_DURATION)))
        frame = image.convert("RGBA")
        frame = colours.to_srgb(frame if size == frame.size else pillow.resized(frame, size), profile)
        frame = frame.transpose(turn) if turn is not None else frame
        frame.info = {}
        frames.append(frame)
    loop = image.info.get("loop")
    opaque = all(frame.getchannel("A").getextrema() == (255, 255) for frame in frames)
    return [frame.convert("RGB") for frame in frames] if opaque else frames, durations, _loop(loop)


def _loop(loop: Any) -> dict[str, int]:
    return {"loop": loop} if isinstance(loop, int) and 0 <= loop <= 65_535 else {}


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError("the animation takes too long")


def _within(
    frames: list[Image.Image], media_type: str, options: dict[str, Any], limit: float, deadline: float
) -> Encoded | None:
    scale, smaller = 1.0, frames
    for _ in range(_TRIES):
        content = b""
        for quality in _QUALITIES.get(media_type, (None,)):
            _check(deadline)
            content = _saved(smaller, media_type, options, quality)
            if len(content) <= limit:
                return Encoded(content, media_type, smaller[0].size)
        scale *= min(0.8, 0.9 * math.sqrt(limit / len(content)))
        if scale < _LEAST_SCALE:
            break
        size = (max(1, round(frames[0].width * scale)), max(1, round(frames[0].height * scale)))
        smaller = [pillow.resized(frame, size) for frame in frames]
    return None


def _saved(frames: list[Image.Image], media_type: str, options: dict[str, Any], quality: int | None) -> bytes:
    extra: dict[str, Any] = dict(options)
    if media_type == "image/gif":
        # Otherwise the previous frame would show through the transparent parts.
        extra["disposal"] = 2 if frames[0].mode == "RGBA" else 1
        frames = [_with_few_colours(frame) for frame in frames]
    else:
        extra |= {"quality": quality, "method": 2, "loop": extra.get("loop", 1)}
    buffer = BytesIO()
    frames[0].save(buffer, _TYPES[media_type], save_all=True, append_images=frames[1:], **extra)
    return buffer.getvalue()


def _with_few_colours(frame: Image.Image) -> Image.Image:
    """Return the frame in a form for GIF. Pillow itself chooses the palette of transparent frames, and does so fast."""
    if frame.mode == "RGBA":
        solid = frame.copy()
        solid.putalpha(frame.getchannel("A").point([0] * 128 + [255] * 128))
        return solid
    sample = frame
    if frame.getcolors(_MANY_COLOURS) is None:
        # The time to find a palette grows with the number of colours, and a GIF has many frames.
        sample = pillow.sampled(frame, (min(frame.width, _SAMPLE_EDGE), min(frame.height, _SAMPLE_EDGE)))
    palette = sample.quantize(256, method=Image.Quantize.MEDIANCUT)
    return frame.quantize(palette=palette, dither=Image.Dither.NONE)

"""Decode sound with PyAV (FFmpeg's libraries), from the extra `audio`. Runs in a worker, on hostile bytes.

Each type is opened with its own container format, so FFmpeg never guesses: among its formats are playlists that name
files. Reading facts does not decode anything.
"""

from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from importlib import import_module
from io import BytesIO
from typing import Any, NamedTuple

from gateway.content.media.sound import Facts, pcm_format, wave_header
from gateway.core.model.media_types import PixelSize
from gateway.errors import MediaError

WAV, MP3 = "audio/wav", "audio/mpeg"
MP3_RATES = frozenset({48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000})

EXTRA = 'pip install "mcp-multimodal-gateway[audio]"'
"""The command that installs PyAV."""

_FORMATS = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "mov",
    "audio/webm": "matroska",
    "audio/aac": "aac",
    "audio/aiff": "aiff",
    "video/mp4": "mov",
    "video/quicktime": "mov",
    "video/webm": "matroska",
    "video/x-matroska": "matroska",
    "video/x-msvideo": "avi",
    "video/ogg": "ogg",
}
_GUESSED_LENGTH = frozenset({"audio/aac"})
"""Types whose length FFmpeg estimates from the first frames."""

_MICROSECONDS = 1_000_000


class Plan(NamedTuple):
    """The form to convert sound to: its type, samples per second, channels, and bits per second."""

    media_type: str
    rate: int
    channels: int
    bit_rate: int


def container_facts(content: bytes, media_type: str) -> Facts:
    """Return the facts in the container. Raises MediaError without the extra, and what PyAV raises on broken input."""
    with closing(_opened(content, media_type)) as container:
        sound = next(iter(container.streams.audio), None)
        video = next((stream for stream in container.streams.video if not _is_cover(stream)), None)
        main = video or sound
        return Facts(
            seconds=_seconds(container, main, media_type) if main else None,
            codec=str(main.codec_context.name) if main else None,
            channels=int(sound.codec_context.channels) or None if sound else None,
            rate=int(sound.codec_context.sample_rate) or None if sound else None,
            pixels=PixelSize(int(video.width), int(video.height)) if video and video.width and video.height else None,
        )


def converted(content: bytes, media_type: str, plan: Plan, seconds: float) -> tuple[bytes, float]:
    """Convert the first `seconds` of the sound to `plan`. Return it and its length, which is less if it breaks off.

    Raises MediaError if there is no sound or the extra is missing, and whatever PyAV raises if the content is broken
    from its beginning.
    """
    with closing(_opened(content, media_type)) as container:
        if not container.streams.audio:
            raise MediaError("it has no sound")
        samples = _samples(container, plan, int(seconds * plan.rate))
        size, made = _mp3(samples, plan) if plan.media_type == MP3 else _wav(samples, plan)
    if not size:
        raise MediaError("no sound could be decoded from it")
    return made, size / (2 * plan.channels) / plan.rate


def _av() -> Any:
    try:
        return import_module("av")
    except ImportError as error:
        raise MediaError("sound of this type needs an extra", remedy=EXTRA) from error


def _opened(content: bytes, media_type: str) -> Any:
    if media_type not in _FORMATS:
        raise MediaError(f"{media_type} cannot be read as sound or video")
    return _av().open(BytesIO(content), "r", format=_FORMATS[media_type])


def _is_cover(stream: Any) -> bool:
    """Whether a stream is a cover picture (AV_DISPOSITION_ATTACHED_PIC)."""
    return bool(int(stream.disposition) & 0x0400)


def _seconds(container: Any, stream: Any, media_type: str) -> float | None:
    if media_type not in _GUESSED_LENGTH:
        if stream.duration and stream.time_base:
            return float(stream.duration * stream.time_base)
        if container.duration:
            return float(container.duration / _MICROSECONDS)
    end = Fraction(0)
    for packet in container.demux(stream):
        if packet.pts is not None:
            end = max(end, (packet.pts + (packet.duration or 0)) * packet.time_base)
    return float(end) or None


def _samples(container: Any, plan: Plan, most: int) -> Iterator[bytes]:
    """Yield samples of 16 bits, channels interleaved, at most `most` of each channel. Broken sound ends early."""
    av = _av()
    stream = container.streams.audio[0]
    stream.thread_count = 1
    resampler = av.AudioResampler(format="s16", layout="mono" if plan.channels == 1 else "stereo", rate=plan.rate)
    width = 2 * plan.channels
    left = most * width
    began = False
    try:
        for frame in (*(),) if left <= 0 else _frames(container, stream, resampler):
            data = bytes(frame.planes[0])[: frame.samples * width][:left]
            left -= len(data)
            began = True
            yield data
            if left <= 0:
                return
    except av.FFmpegError:
        if not began:
            raise


def _frames(container: Any, stream: Any, resampler: Any) -> Iterator[Any]:
    for frame in container.decode(stream):
        # Timestamps may jump, and the resampler would fill the gap with hours of silence.
        frame.pts = None
        yield from resampler.resample(frame)
    yield from resampler.resample(None)


def _wav(samples: Iterator[bytes], plan: Plan) -> tuple[int, bytes]:
    data = b"".join(samples)
    return len(data), wave_header(pcm_format(plan.rate, plan.channels), len(data)) + data


def _mp3(samples: Iterator[bytes], plan: Plan) -> tuple[int, bytes]:
    av = _av()
    layout = "mono" if plan.channels == 1 else "stereo"
    buffer, size = BytesIO(), 0
    # Without tags: they would reveal the encoder and the time.
    untagged = {"id3v2_version": "0", "write_id3v1": "0"}
    with closing(av.open(buffer, "w", format="mp3", options=untagged)) as container:
        stream = container.add_stream("libmp3lame", rate=plan.rate, layout=layout)
        stream.bit_rate = plan.bit_rate
        for data in samples:
            frame = av.AudioFrame(format="s16", layout=layout, samples=len(data) // (2 * plan.channels))
            frame.planes[0].update(data + bytes(frame.planes[0].buffer_size - len(data)))
            frame.sample_rate = plan.rate
            frame.pts = size // (2 * plan.channels)
            frame.time_base = Fraction(1, plan.rate)
            size += len(data)
            container.mux(stream.encode(frame))
        if size:
            container.mux(stream.encode(None))
    return size, buffer.getvalue()

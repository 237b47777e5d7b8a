"""Sound and video for tests, made by PyAV: a tone, in every type that is read."""

import math
import struct
from fractions import Fraction
from io import BytesIO
from typing import Any

import av

ENCODED = {
    "audio/flac": ("flac", "flac", 44_100),
    "audio/mpeg": ("mp3", "libmp3lame", 44_100),
    "audio/ogg": ("ogg", "libopus", 48_000),
    "audio/mp4": ("ipod", "aac", 44_100),
    "audio/webm": ("webm", "libopus", 48_000),
    "audio/aac": ("adts", "aac", 44_100),
    "audio/wav": ("wav", "pcm_s16le", 44_100),
}
"""Media type: FFmpeg's names of the container and the codec, and a rate that the codec takes."""

_PIECE = 4_096


def tone(seconds: float, rate: int, channels: int = 1, hertz: float = 440) -> bytes:
    """Samples of 16 bits of a sine, channels interleaved."""
    wave = (round(9_000 * math.sin(2 * math.pi * hertz * index / rate)) for index in range(round(seconds * rate)))
    return b"".join(struct.pack("<h", value) * channels for value in wave)


def wav(seconds: float, rate: int = 8_000, channels: int = 1) -> bytes:
    """A WAV file of a tone, of 16 bits."""
    data = tone(seconds, rate, channels)
    form = struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)
    size = 4 + 8 + len(form) + 8 + len(data)
    head = b"RIFF" + struct.pack("<I", size) + b"WAVEfmt " + struct.pack("<I", len(form)) + form
    return head + b"data" + struct.pack("<I", len(data)) + data


def encoded(media_type: str, seconds: float, channels: int = 2) -> bytes:
    """A tone in one of the types of `ENCODED`."""
    container, codec, rate = ENCODED[media_type]
    layout = "mono" if channels == 1 else "stereo"
    buffer = BytesIO()
    with av.open(buffer, "w", format=container) as file:
        stream: Any = file.add_stream(codec, rate=rate, layout=layout)
        data, width = tone(seconds, rate, channels), 2 * channels
        for start in range(0, len(data), _PIECE * width):
            piece = data[start : start + _PIECE * width]
            frame = av.AudioFrame(format="s16", layout=layout, samples=len(piece) // width)
            frame.planes[0].update(piece.ljust(frame.planes[0].buffer_size, b"\0"))
            frame.sample_rate, frame.pts, frame.time_base = rate, start // width, Fraction(1, rate)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return buffer.getvalue()


def video(container: str = "mp4", codec: str = "mpeg4", *, frames: int = 20, rate: int = 10) -> bytes:
    """A silent video of 64 x 48 black pixels."""
    buffer = BytesIO()
    with av.open(buffer, "w", format=container) as file:
        stream: Any = file.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for _ in range(frames):
            frame = av.VideoFrame(64, 48, "yuv420p")
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return buffer.getvalue()

"""Codes as a PDF document and as sound: files of a few kilobytes, written byte by byte."""

import math
import os
import zlib

from gateway.routing.calibration.digits import mask

_RATE = 8_000
_TONE_HZ = 880
_TONE, _PAUSE, _BETWEEN = 0.15, 0.15, 0.9  # seconds: a tone, after each, and more after each group


def document(code: str) -> bytes:
    """Return a PDF of one page on which the code is drawn with squares, without any text."""
    points, point = mask(code), 12
    squares = "".join(
        f"{60 + x * point} {260 - y * point} {point} {point} re\n"
        for y in range(points.height)
        for x in range(points.width)
        if points.getpixel((x, y))
    )
    drawn = zlib.compress(f"0.06 0.09 0.38 rg\n{squares}f\n".encode())
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 400]/Resources<<>>/Contents 4 0 R>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n" % len(drawn) + drawn + b"\nendstream",
    )
    content, starts = b"%PDF-1.4\n", list[int]()
    for number, written in enumerate(objects, 1):
        starts.append(len(content))
        content += b"%d 0 obj\n" % number + written + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % start for start in starts)
    count, at = len(objects) + 1, len(content)
    return content + (
        b"xref\n0 %d\n0000000000 65535 f \n" % count
        + table
        + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (count, at)
    )


def sound(code: str) -> bytes:
    """Return a WAV (8 bits, 8 kHz, mono) with one group of tones per digit, as many as the digit, on faint noise."""
    tone = bytes(128 + round(90 * math.sin(2 * math.pi * _TONE_HZ * at / _RATE)) for at in range(_samples(_TONE)))
    parts: list[bytes] = [_silence(_BETWEEN)]
    for digit in code:
        for _ in range(int(digit)):
            parts += [tone, _silence(_PAUSE)]
        parts.append(_silence(_BETWEEN))
    samples = b"".join(parts)
    form = (1).to_bytes(2, "little") + (1).to_bytes(2, "little")  # PCM, one channel
    rates = _RATE.to_bytes(4, "little") * 2 + (1).to_bytes(2, "little") + (8).to_bytes(2, "little")
    chunks = b"fmt " + (16).to_bytes(4, "little") + form + rates + b"data" + len(samples).to_bytes(4, "little")
    return b"RIFF" + (len(chunks) + 4 + len(samples)).to_bytes(4, "little") + b"WAVE" + chunks + samples


def _samples(seconds: float) -> int:
    return 2 * round(seconds * _RATE / 2)  # even, so that no chunk needs padding


def _silence(seconds: float) -> bytes:
    return bytes(126 + value % 5 for value in os.urandom(_samples(seconds)))

"""Read the headers of sound, and cut sound that can be cut without decoding: WAV and MP3. Works on bytes only.

WAV: RIFF chunks (Microsoft, Multimedia Programming Interface 1.0). MP3: ISO 11172-3 and 13818-3, layer III, preceded by
ID3v2. FLAC: RFC 9639. Ogg: RFC 3533, containing Vorbis I (section 4.2.2) or Opus (RFC 7845).
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gateway.core.model.media_types import PixelSize


class Facts(NamedTuple):
    """Facts about sound or video: its length in seconds, codec, channels, samples per second, size in pixels."""

    seconds: float | None = None
    codec: str | None = None
    channels: int | None = None
    rate: int | None = None
    pixels: PixelSize | None = None


def header_facts(content: bytes, media_type: str) -> Facts:
    """Return the facts in the headers; empty if they are broken or of a type that is not read here."""
    reader = _READERS.get(media_type)
    try:
        return reader(content) if reader else Facts()
    except (IndexError, struct.error, ZeroDivisionError):
        return Facts()


def shorten_sound(content: bytes, media_type: str, seconds: float, limit: float) -> tuple[bytes, float] | None:
    """Return the beginning of a WAV or MP3, at most `seconds` and `limit` bytes, and its length.

    Return None if it is neither, if it cannot be cut between any two samples, or if nothing would be left.
    """
    cutter = _CUTTERS.get(media_type)
    cut = cutter(content, seconds, limit) if cutter else None
    return cut if cut and cut[1] > 0 else None


# ----------------------------------------------------------------------------------------------------------------- WAV

_WAV_CODECS = {0x0001: "pcm", 0x0003: "float", 0x0006: "alaw", 0x0007: "mulaw", 0x0011: "adpcm", 0x0055: "mp3"}
_EVEN_BLOCKS = frozenset({"pcm", "float", "alaw", "mulaw"})
_EXTENSIBLE = 0xFFFE
_MOST_CHUNKS = 1_000


class _Wave(NamedTuple):
    codec: str | None
    channels: int
    rate: int
    bytes_a_second: int
    block: int
    format: bytes
    data: memoryview


def _wave(content: bytes) -> _Wave | None:
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        return None
    at, form = 12, b""
    for _ in range(_MOST_CHUNKS):
        if at + 8 > len(content):
            return None
        name, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        if name == b"fmt ":
            form = content[at + 8 : at + 8 + min(size, 64)]
        elif name == b"data":
            # A WAV written to a pipe declares the maximum size; the data ends where the content does.
            return _with_data(form, memoryview(content)[at + 8 : at + 8 + size])
        at += 8 + size + size % 2
    return None


def _with_data(form: bytes, data: memoryview) -> _Wave | None:
    if len(form) < 16:
        return None
    tag, channels, rate, bytes_a_second, block = struct.unpack("<HHIIH", form[:14])
    if tag == _EXTENSIBLE and len(form) >= 26:
        tag = int.from_bytes(form[24:26], "little")
    if not (channels and rate and bytes_a_second and block):
        return None
    return _Wave(_WAV_CODECS.get(tag), channels, rate, bytes_a_second, block, form, data)


def _wav_facts(content: bytes) -> Facts:
    wave = _wave(content)
    if wave is None:
        return Facts()
    return Facts(len(wave.data) / wave.bytes_a_second, wave.codec, wave.channels, wave.rate)


def _cut_wav(content: bytes, seconds: float, limit: float) -> tuple[bytes, float] | None:
    wave = _wave(content)
    if wave is None or wave.codec not in _EVEN_BLOCKS:
        return None
    room = limit - len(wave_header(wave.format, 0))
    blocks = int(min(len(wave.data), seconds * wave.rate * wave.block, max(0, room)) // wave.block)
    data = wave.data[: blocks * wave.block]
    return wave_header(wave.format, len(data)) + bytes(data), len(data) / wave.bytes_a_second


def wave_header(form: bytes, size: int) -> bytes:
    """Return the start of a WAV file, up to its `size` bytes of data; `form` is the content of its `fmt ` chunk."""
    chunk = b"fmt " + len(form).to_bytes(4, "little") + form + bytes(len(form) % 2)
    total = (4 + len(chunk) + 8 + size).to_bytes(4, "little")
    return b"RIFF" + total + b"WAVE" + chunk + b"data" + size.to_bytes(4, "little")


def pcm_format(rate: int, channels: int) -> bytes:
    """Return the content of the `fmt ` chunk for samples of 16 bits."""
    return struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16)


# ----------------------------------------------------------------------------------------------------------------- MP3

_KBPS = {
    True: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    False: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
"""Kilobits per second by the header's bit rate index; True is MPEG 1, False is MPEG 2 and 2.5."""

_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}
"""Samples per second by the header's version (3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5) and sampling frequency index."""

_MOST_LOST = 1_000
"""How often to search for the next frame if none follows."""


class _Frame(NamedTuple):
    at: int
    size: int
    samples: int
    rate: int
    channels: int


def _frame(content: bytes, at: int) -> _Frame | None:
    header = content[at : at + 4]
    if len(header) < 4 or header[0] != 0xFF or header[1] & 0xE0 != 0xE0:
        return None
    version, layer = header[1] >> 3 & 3, header[1] >> 1 & 3
    kbps_index, rate_index = header[2] >> 4, header[2] >> 2 & 3
    if version == 1 or layer != 1 or kbps_index in (0, 15) or rate_index == 3:
        return None
    samples = 1_152 if version == 3 else 576
    rate = _RATES[version][rate_index]
    size = samples // 8 * _KBPS[version == 3][kbps_index] * 1_000 // rate + (header[2] >> 1 & 1)
    return _Frame(at, size, samples, rate, 1 if header[3] >> 6 == 3 else 2)


def _frames(content: bytes) -> Iterator[_Frame]:
    """Yield the frames that contain sound, not a Xing or Info frame, which holds the length of the others."""
    at = 0
    if content.startswith(b"ID3") and len(content) >= 10:
        # The length has 7 bits in each byte (ID3v2.4, section 3.1).
        at = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(content[6:10], (21, 14, 7, 0), strict=True))
    rate, lost = 0, 0
    while lost < _MOST_LOST:
        frame = _frame(content, at)
        if frame is None or (rate and frame.rate != rate) or at + frame.size > len(content):
            lost += 1
            at = content.find(b"\xff", at + 1)
            if at < 0:
                return
            continue
        if rate or not {b"Xing", b"Info"} & {content[at + side : at + side + 4] for side in (13, 21, 36)}:
            yield frame
        rate = frame.rate
        at += frame.size


def _mp3_facts(content: bytes) -> Facts:
    samples, last = 0, None
    for last in _frames(content):
        samples += last.samples
    return Facts(samples / last.rate, "mp3", last.channels, last.rate) if last else Facts()


def _cut_mp3(content: bytes, seconds: float, limit: float) -> tuple[bytes, float] | None:
    kept: list[memoryview] = []
    size, length = 0, 0.0
    whole = memoryview(content)
    for frame in _frames(content):
        after = length + frame.samples / frame.rate
        if after > seconds or size + frame.size > limit:
            break
        kept.append(whole[frame.at : frame.at + frame.size])
        size, length = size + frame.size, after
    return b"".join(kept), length


# -------------------------------------------------------------------------------------------------------- FLAC and Ogg


def _flac_facts(content: bytes) -> Facts:
    # The first block is always STREAMINFO (RFC 9639, section 8.2); its fields here have 20, 3, 5 and 36 bits.
    if content[:4] != b"fLaC" or content[4] & 0x7F:
        return Facts()
    bits = struct.unpack(">Q", content[18:26])[0]
    rate, channels, samples = bits >> 44, (bits >> 41 & 7) + 1, bits & (1 << 36) - 1
    return Facts(samples / rate if samples else None, "flac", channels, rate)


_LAST_PAGE = 65_307
"""The size of the largest possible Ogg page in bytes."""


def _ogg_facts(content: bytes) -> Facts:
    if content[:4] != b"OggS":
        return Facts()
    packet = 27 + content[26]
    last = content.rfind(b"OggS", max(0, len(content) - 2 * _LAST_PAGE))
    (granule,) = struct.unpack("<q", content[last + 6 : last + 14])
    if content[packet : packet + 8] == b"OpusHead":
        channels, skipped = struct.unpack("<BH", content[packet + 9 : packet + 12])
        return Facts(max(0, granule - skipped) / 48_000, "opus", channels, 48_000)
    if content[packet : packet + 7] == b"\x01vorbis":
        channels, rate = struct.unpack("<BI", content[packet + 11 : packet + 16])
        return Facts(max(0, granule) / rate, "vorbis", channels, rate)
    return Facts()


_READERS: Mapping[str, Callable[[bytes], Facts]] = {
    "audio/wav": _wav_facts,
    "audio/mpeg": _mp3_facts,
    "audio/flac": _flac_facts,
    "audio/ogg": _ogg_facts,
}
_CUTTERS: Mapping[str, Callable[[bytes, float, float], tuple[bytes, float] | None]] = {
    "audio/wav": _cut_wav,
    "audio/mpeg": _cut_mp3,
}

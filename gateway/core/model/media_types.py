"""Media types: their aliases, and the real type of content by its first bytes.

Sizes are read from headers only and nothing is decoded, so that a hostile image costs nothing before it is judged.
"""

import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from gateway.core.model.base64_text import head

ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/svg": "image/svg+xml",
    "audio/wave": "audio/wav",
    "audio/x-wav": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-flac": "audio/flac",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "audio/aacp": "audio/aac",
    "audio/x-aac": "audio/aac",
    "audio/x-aiff": "audio/aiff",
    "audio/opus": "audio/ogg",
    "audio/vorbis": "audio/ogg",
    "application/ogg": "audio/ogg",
    "application/x-pdf": "application/pdf",
}
UNINFORMATIVE = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown", "*/*"})
"""Declared types that say nothing."""

ALWAYS_RECOGNISED = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff", "audio/wav", "application/pdf"}
)
"""Types that `inspect` always recognises: content declared as one of these and not recognised is something else."""

ZIPPED = (
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
    "application/epub+zip",
)
"""Prefixes of types whose content is a zip archive: the bytes show no more than that, so the declared type is used."""

EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/svg+xml": "svg",
    "image/bmp": "bmp",
    "image/tiff": "tiff",
    "image/avif": "avif",
    "image/heic": "heic",
    "image/heif": "heif",
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "m4a",
    "audio/webm": "weba",
    "audio/aac": "aac",
    "audio/aiff": "aiff",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-msvideo": "avi",
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/zip": "zip",
    "application/gzip": "gz",
    "application/json": "json",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/html": "html",
    "text/csv": "csv",
}

HEAD_BYTES = 64 * 1024
"""Maximum number of bytes of the content that the functions here examine."""


class PixelSize(NamedTuple):
    """Width and height in pixels, according to the header."""

    width: int
    height: int


class SniffedType(NamedTuple):
    """The real type of content: its media type (None if unknown), and its size in pixels if it is an image."""

    media_type: str | None
    size: PixelSize | None = None


def normalise(media_type: str | None) -> str | None:
    """Return a media type in lower case, without parameters, aliases resolved; None for a type that says nothing."""
    if media_type is None:
        return None
    plain = media_type.split(";", 1)[0].strip().lower()
    plain = ALIASES.get(plain, plain)
    return None if plain in UNINFORMATIVE else plain


def extension(media_type: str | None) -> str:
    """Return the usual file name extension, without the dot; `bin` if there is none."""
    return EXTENSIONS.get(media_type or "", "bin")


def family(media_type: str | None) -> str:
    """Return `image`, `audio`, `video`, `text`, `document` or `other`."""
    if media_type is None:
        return "other"
    if media_type == "application/pdf":
        return "document"
    top = media_type.split("/", 1)[0]
    return top if top in ("image", "audio", "video", "text") else "other"


def inspect_base64(data: str) -> SniffedType:
    """Inspect the beginning of well-formed base64; see `inspect`."""
    return inspect(head(data, HEAD_BYTES))


def inspect(content: bytes) -> SniffedType:
    """Recognise content by its first bytes. Never raises; what cannot be recognised is None."""
    first = content[:1]
    for magic, reader in _READERS_BY_FIRST_BYTE.get(first, ()):
        if content.startswith(magic):
            return reader(content)
    if content[4:8] == b"ftyp":
        return SniffedType(_FTYP.get(content[8:12], "video/mp4"))
    beginning = content[:HEAD_BYTES]
    if first in _FIRST_OF_SVG and (at := _svg_at(beginning)) is not None:
        return SniffedType("image/svg+xml", _svg_size(beginning, at))
    return SniffedType(None)


def may_be_animated(content: bytes) -> bool:
    """Whether an image has more than one frame, or is a GIF whose beginning does not rule it out."""
    if content.startswith(b"RIFF") and content[8:16] == b"WEBPVP8X":
        return len(content) > 20 and bool(content[20] & 0x02)
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        # https://www.w3.org/TR/png-3/#acTL-chunk: before the first IDAT.
        return b"acTL" in content.partition(b"IDAT")[0]
    return content.startswith((b"GIF87a", b"GIF89a"))


def _png(content: bytes) -> SniffedType:
    if len(content) < 24 or content[12:16] != b"IHDR":
        return SniffedType("image/png")
    return SniffedType("image/png", PixelSize(*struct.unpack(">II", content[16:24])))


def _gif(content: bytes) -> SniffedType:
    return SniffedType("image/gif", PixelSize(*struct.unpack("<HH", content[6:10])) if len(content) >= 10 else None)


_BMP_HEADERS = frozenset({40, 52, 56, 64, 108, 124})


def _bmp(content: bytes) -> SniffedType:
    if len(content) < 26 or int.from_bytes(content[14:18], "little") not in _BMP_HEADERS:
        return SniffedType(None)
    width, height = struct.unpack("<ii", content[18:26])
    return SniffedType("image/bmp", PixelSize(abs(width), abs(height)))


_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})


def _jpeg(content: bytes) -> SniffedType:
    at = 2
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            break
        marker = content[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        elif marker in _SOF:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return SniffedType("image/jpeg", PixelSize(width, height))
        else:
            at += 2 + struct.unpack(">H", content[at + 2 : at + 4])[0]
    return SniffedType("image/jpeg")


def _riff(content: bytes) -> SniffedType:
    kind = content[8:12]
    if kind == b"WAVE":
        return SniffedType("audio/wav")
    if kind != b"WEBP":
        return SniffedType("video/x-msvideo" if kind == b"AVI " else None)
    return SniffedType("image/webp", _webp_size(content))


def _webp_size(content: bytes) -> PixelSize | None:
    chunk = content[12:16]
    if chunk == b"VP8X" and len(content) >= 30:
        return PixelSize(
            1 + int.from_bytes(content[24:27], "little"),
            1 + int.from_bytes(content[27:30], "little"),
        )
    if chunk == b"VP8 " and len(content) >= 30:
        width, height = struct.unpack("<HH", content[26:30])
        return PixelSize(width & 0x3FFF, height & 0x3FFF)
    if chunk == b"VP8L" and len(content) >= 25:
        bits = int.from_bytes(content[21:25], "little")
        return PixelSize(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    return None


_PROLOGUE = ((b"<?", b"?>"), (b"<!--", b"-->"), (b"<!DOCTYPE", b">"))
_SVG_START = re.compile(rb"<(?:\w+:)?svg[\s>/]")


def _svg_at(content: bytes) -> int | None:
    """Find the first element if it is an svg, by a plain scan: a pattern for this backtracks exponentially."""
    at = 3 if content.startswith(b"\xef\xbb\xbf") else 0
    while True:
        while content[at : at + 1].isspace():
            at += 1
        for start, end in _PROLOGUE:
            if content.startswith(start, at):
                # An internal DTD subset contains '>' itself; it ends with ']>'.
                subset = end == b">" and 0 <= content.find(b"[", at) < content.find(b">", at)
                close = content.find(b"]" if subset else end, at + len(start))
                if close < 0:
                    return None
                at = content.find(b">", close) + 1 if subset else close + len(end)
                break
        else:
            return at if _SVG_START.match(content, at) else None


_SVG_TAG = re.compile(rb"<(?:\w+:)?svg\b[^>]*>", re.DOTALL)
_SVG_LENGTH = rb"""\b%s\s*=\s*["']\s*([0-9.]+)(?:px)?\s*["']"""
_SVG_BOX = re.compile(rb"""\bviewBox\s*=\s*["']\s*[-0-9.]+[\s,]+[-0-9.]+[\s,]+([0-9.]+)[\s,]+([0-9.]+)\s*["']""")


def _svg_size(content: bytes, at: int) -> PixelSize | None:
    tag = _SVG_TAG.match(content, at)  # searching for it would take quadratic time
    if tag is None:
        return None
    found = [re.search(_SVG_LENGTH % side, tag[0]) for side in (b"width", b"height")]
    box = _SVG_BOX.search(tag[0])
    texts = [match[1] for match in found if match] if all(found) else list(box.groups()) if box else []
    try:
        width, height = (max(1, round(float(text))) for text in texts)
    except (ValueError, OverflowError):  # OverflowError: a number with hundreds of digits
        return None
    return PixelSize(width, height)


_FTYP = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"hevc": "image/heic",
    b"hevx": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_READERS: tuple[tuple[bytes, Callable[[bytes], SniffedType]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8\xff", _jpeg),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"RIFF", _riff),
    (b"BM", _bmp),
)
_TYPES = (
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"%PDF-", "application/pdf"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xfa", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)


_Reader = Callable[[bytes], SniffedType]


def _as_type(media_type: str) -> _Reader:
    known = SniffedType(media_type)
    return lambda content: known


def _by_first_byte() -> dict[bytes, list[tuple[bytes, _Reader]]]:
    """Return all that is known by its first bytes, by the first of them: most strings of a large result have none."""
    found: dict[bytes, list[tuple[bytes, _Reader]]] = {}
    for magic, reader in (*_READERS, *((magic, _as_type(media_type)) for magic, media_type in _TYPES)):
        found.setdefault(magic[:1], []).append((magic, reader))
    return found


_READERS_BY_FIRST_BYTE = _by_first_byte()
_FIRST_OF_SVG = frozenset({b"<", b"\xef", b" ", b"\t", b"\n", b"\r", b"\x0b", b"\x0c"})
"""An element, a byte order mark, or space before it."""

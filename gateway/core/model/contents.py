"""Finding out what the bytes of a block are: their real type, and their text if they are text."""

import pybase64

from gateway.core.model import media_types
from gateway.core.model.base64_text import Mended, decode_tail, decoded_size, head
from gateway.core.model.blocks import Found
from gateway.core.model.gif_blocks import ends_with_trailer

_MOST_TEXT_BYTES = 400_000
_TEXTUAL = frozenset(
    {
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/toml",
        "application/ndjson",
        "application/javascript",
    }
)
_UNPRINTABLE = frozenset(chr(code) for code in range(32)) - frozenset("\t\n\r\f")
_SVG = "image/svg+xml"
_SOUND_ALONE = {"video/mp4": "audio/mp4", "video/quicktime": "audio/mp4", "video/webm": "audio/webm"}
"""Containers whose first bytes do not show whether there is video as well as sound; the declared type decides."""


def found_in(mended: Mended, declared: str | None) -> Found | None:
    """Inspect the content of mended base64; None if it is not base64."""
    if mended.data is None:
        return None
    finding = media_types.inspect_base64(mended.data)
    declared_type = media_types.normalise(declared) or media_types.normalise(mended.media_type)
    if (
        finding.media_type == "application/zip"
        and declared_type is not None
        and declared_type.startswith(media_types.ZIPPED)
    ):
        finding = media_types.SniffedType(declared_type)
    if finding.media_type in _SOUND_ALONE and declared_type is not None and declared_type.startswith("audio/"):
        finding = media_types.SniffedType(_SOUND_ALONE[finding.media_type])
    return Found(
        data=mended.data,
        byte_size=decoded_size(mended.data),
        media_type=finding.media_type or (None if declared_type in media_types.ALWAYS_RECOGNISED else declared_type),
        pixels=finding.size,
    )


def may_move(found: Found) -> bool:
    """Whether an image may have more than one frame, judged by its beginning (a GIF has to be decoded to be sure)."""
    return media_types.may_be_animated(head(found.data, media_types.HEAD_BYTES))


def may_be_cut_off(found: Found) -> bool:
    """Whether an image lacks the end that its format requires, so that only decoding shows whether it is usable.

    Checked are IEND (PNG, https://www.w3.org/TR/png-3/#5Chunk-layout), EOI (JPEG, ITU-T T.81 B.1.1.3), the trailer
    behind the last block of a GIF, and the length that a WebP declares. Model APIs refuse a whole request because of
    one truncated image.
    """
    end = decode_tail(found.data, _TRAILER_BYTES)
    match found.media_type:
        case "image/png":
            return b"IEND\xaeB`\x82" not in end
        case "image/jpeg":
            return b"\xff\xd9" not in end
        case "image/gif":
            return not (end.rstrip(b"\0").endswith(b"\0;") and ends_with_trailer(pybase64.b64decode(found.data)))
        case "image/webp":
            return int.from_bytes(head(found.data, 8)[4:8], "little") + 8 > found.byte_size
        case _:
            return False


_TRAILER_BYTES = 48


def is_textual(media_type: str | None, *, drawings: bool = False) -> bool:
    """Whether content of this type is a text file; with `drawings`, SVG counts as well."""
    if media_type is None:
        return False
    if media_type == _SVG:
        return drawings
    return media_type in _TEXTUAL or media_type.startswith("text/") or media_type.endswith(("+json", "+xml", "+yaml"))


def decoded_text(found: Found) -> str | None:
    """Decode the content as UTF-8; None if it is not text, or is too long for anybody to read."""
    if found.byte_size > _MOST_TEXT_BYTES:
        return None
    try:
        text = pybase64.b64decode(found.data).decode("utf-8-sig")
    except ValueError:
        return None
    return None if _UNPRINTABLE.intersection(text) else text

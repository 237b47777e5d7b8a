"""Repairing PNG files at the level of their chunks (https://www.w3.org/TR/png-3/#5Chunk-layout)."""

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ANCILLARY = 0x20
"""The bit in the first letter of a chunk type that marks the chunk as optional."""


def without_broken_extras(content: bytes) -> bytes:
    """Return the PNG without the ancillary chunks whose checksum is wrong; any other content is returned untouched.

    libpng skips such chunks with a warning (`png_set_crc_action`), and so do browsers and most hosts; Pillow 12 refuses
    the whole image. The image of the reference server `everything` has one.
    """
    if not content.startswith(_SIGNATURE):
        return content
    kept, at, begun = [_SIGNATURE], len(_SIGNATURE), len(_SIGNATURE)
    while at + 12 <= len(content):
        (size,) = struct.unpack_from(">I", content, at)
        end = at + 12 + size
        kind = content[at + 4 : at + 8]
        if end > len(content) or kind == b"IDAT":
            break
        if (
            kind[0] & _ANCILLARY
            and zlib.crc32(content[at + 4 : end - 4]) != struct.unpack_from(">I", content, end - 4)[0]
        ):
            kept.append(content[begun:at])
            begun = end
        at = end
    return content if begun == len(_SIGNATURE) else b"".join([*kept, content[begun:]])

"""PNG, as far as its chunks go (https://www.w3.org/TR/png-3/#5Chunk-layout)."""

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_ANCILLARY = 0x20
"""The bit of a chunk type's first letter that says that the picture can do without the chunk."""


def without_broken_extras(content: bytes) -> bytes:
    """The same PNG without the ancillary chunks whose checksum is wrong; whatever else it is comes back untouched.

    libpng leaves such chunks out with a warning (`png_set_crc_action`), and so do browsers and most hosts; Pillow 12
    refuses the whole picture. The picture of the reference server `everything` has one.
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

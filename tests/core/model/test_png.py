"""A PNG whose extras are broken is still a picture."""

import io
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gateway.core.model.png import without_broken_extras


def chunk(kind: bytes, content: bytes, *, is_right: bool = True) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content) ^ (not is_right))
    )


def picture(*extras: bytes) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(out, "PNG")
    whole = out.getvalue()
    return whole[:33] + b"".join(extras) + whole[33:]


BROKEN = chunk(b"iCCP", b"name\0\0nothing", is_right=False)
GOOD = chunk(b"tEXt", b"Title\0good")


def test_broken_extras_go_and_all_else_stays() -> None:
    with pytest.raises(OSError):
        Image.open(io.BytesIO(picture(BROKEN)))
    mended = without_broken_extras(picture(BROKEN, GOOD, BROKEN))
    assert mended == picture(GOOD)
    with Image.open(io.BytesIO(mended)) as image:
        assert image.convert("RGB").getpixel((0, 0)) == (255, 0, 0)


def test_what_is_whole_or_no_png_is_the_very_same() -> None:
    for content in (picture(GOOD), b"", b"GIF89a", picture()[:40], b"\x89PNG\r\n\x1a\n"):
        assert without_broken_extras(content) is content


def test_a_picture_cannot_do_without_its_header() -> None:
    broken = bytearray(picture())
    broken[29] ^= 1  # in the checksum of IHDR
    assert without_broken_extras(bytes(broken)) == bytes(broken)


@given(st.binary(max_size=200))
def test_no_bytes_break_it(content: bytes) -> None:
    for hostile in (content, b"\x89PNG\r\n\x1a\n" + content):
        assert len(without_broken_extras(hostile)) <= len(hostile)

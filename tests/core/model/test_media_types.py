"""Content is judged by its first bytes, whatever it is called, and never decoded for that."""

import base64
import io
import zlib

import pytest
from PIL import Image

from gateway.core.model.base64_text import decoded_size, head, mend
from gateway.core.model.media_types import PixelSize, SniffedType, family, inspect, inspect_base64, normalise


def encoded(image_format: str, size: tuple[int, int] = (31, 17), **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.effect_noise(size, 60).convert("RGB").save(buffer, image_format, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("image_format", "options", "media_type"),
    [
        ("PNG", {}, "image/png"),
        ("JPEG", {}, "image/jpeg"),
        ("JPEG", {"progressive": True}, "image/jpeg"),
        ("GIF", {}, "image/gif"),
        ("WEBP", {}, "image/webp"),
        ("WEBP", {"lossless": True}, "image/webp"),
        ("BMP", {}, "image/bmp"),
    ],
)
def test_type_and_pixels_come_from_the_header(image_format: str, options: dict, media_type: str) -> None:
    assert inspect(encoded(image_format, **options)) == SniffedType(media_type, PixelSize(31, 17))


def test_an_extended_webp_tells_its_canvas() -> None:
    buffer = io.BytesIO()
    Image.new("RGBA", (31, 17), (1, 2, 3, 4)).save(buffer, "WEBP", exif=b"Exif\0\0")
    assert inspect(buffer.getvalue()) == SniffedType("image/webp", PixelSize(31, 17))


@pytest.mark.parametrize(
    ("content", "finding"),
    [
        (b"%PDF-1.7\n", SniffedType("application/pdf")),
        (b"RIFF\x24\0\0\0WAVEfmt ", SniffedType("audio/wav")),
        (b"RIFF\x24\0\0\0AVI LIST", SniffedType("video/x-msvideo")),
        (b"fLaC\0\0", SniffedType("audio/flac")),
        (b"OggS\0\2", SniffedType("audio/ogg")),
        (b"ID3\4", SniffedType("audio/mpeg")),
        (b"\0\0\0\x1cftypavif", SniffedType("image/avif")),
        (b"\0\0\0\x18ftypM4A ", SniffedType("audio/mp4")),
        (b"\0\0\0\x18ftypisom", SniffedType("video/mp4")),
        (b"PK\3\4", SniffedType("application/zip")),
        (b"", SniffedType(None)),
        (b"hello", SniffedType(None)),
        (b"BMW and other cars are no bitmap", SniffedType(None)),
        (b"\x89PNG\r\n\x1a\n", SniffedType("image/png")),
        (b"\xff\xd8\xff", SniffedType("image/jpeg")),
        (b"GIF89a", SniffedType("image/gif")),
    ],
)
def test_other_content_is_told_apart(content: bytes, finding: SniffedType) -> None:
    assert inspect(content) == finding


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ('<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10px"/>', PixelSize(20, 10)),
        ('<?xml version="1.0"?>\n<!-- a --><!-- b -->\n<svg viewBox="0 0 30 15"></svg>', PixelSize(30, 15)),
        ('\ufeff<!DOCTYPE svg [<!ENTITY a "<b>">]><svg:svg width="1e" height="x"/>', None),
        ('<svg width="100%" height="100%" viewBox="0,0,7.6,3"/>', PixelSize(8, 3)),
        ("<svg></svg>", None),
    ],
)
def test_svg_is_recognised_behind_its_prologue(text: str, size: PixelSize | None) -> None:
    assert inspect(text.encode()) == SniffedType("image/svg+xml", size)


def test_html_that_holds_an_svg_is_no_svg() -> None:
    assert inspect(b"<html><svg></svg></html>").media_type is None


def test_a_hostile_prologue_is_scanned_in_linear_time() -> None:
    # A regular expression for this needs exponential time; the scan visits each byte a few times.
    assert inspect(b"<!---->" * 9_000).media_type is None


def test_a_header_that_lies_about_its_length_is_no_error() -> None:
    assert inspect(b"\xff\xd8\xff\xe0\xff\xff" + b"\0" * 20) == SniffedType("image/jpeg")


def test_base64_is_looked_at_without_decoding_it_all() -> None:
    data = base64.b64encode(encoded("PNG") + zlib.compress(bytes(500_000))).decode()
    assert inspect_base64(data) == SniffedType("image/png", PixelSize(31, 17))
    assert len(head(data, 100)) == 100
    assert head("!!!", 10) == b""


@pytest.mark.parametrize(
    ("declared", "normal"),
    [
        ("image/JPG", "image/jpeg"),
        ("audio/x-wav; rate=1", "audio/wav"),
        ("application/octet-stream", None),
        ("", None),
        (None, None),
        ("Text/Plain;charset=utf-8", "text/plain"),
    ],
)
def test_declared_types_are_normalised(declared: str | None, normal: str | None) -> None:
    assert normalise(declared) == normal


def test_families_name_what_a_person_would_say() -> None:
    assert [family(name) for name in ("image/png", "application/pdf", "application/zip", None, "audio/wav")] == [
        "image",
        "document",
        "other",
        "other",
        "audio",
    ]


WHOLE = base64.b64encode(b"\xfb\xff\xfehello there")


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (WHOLE.decode(), ()),
        (WHOLE.decode().rstrip("="), ("its padding",)),
        ("\n".join([WHOLE.decode()[:8], WHOLE.decode()[8:]]), ("white space",)),
        ("data:image/png;base64," + WHOLE.decode(), ("a data: prefix",)),
        (WHOLE.decode().replace("+", "-").replace("/", "_"), ("the URL-safe alphabet",)),
    ],
)
def test_badly_wrapped_base64_is_mended(text: str, mended: tuple[str, ...]) -> None:
    result = mend(text)
    assert result.data is not None
    assert base64.b64decode(result.data, validate=True) == base64.b64decode(WHOLE)
    assert result.mended == mended
    assert decoded_size(result.data) == len(base64.b64decode(WHOLE))


def test_whole_base64_is_handed_back_uncopied() -> None:
    text = WHOLE.decode()
    assert mend(text).data is text


@pytest.mark.parametrize("text", ["", "not base64!", "AAAAA", "AA+A-_AA", "data:text/plain,hello", "====", "é" * 8])
def test_what_is_no_base64_is_not_mended(text: str) -> None:
    assert mend(text).data is None

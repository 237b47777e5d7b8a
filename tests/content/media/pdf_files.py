"""A small writer of PDF files for tests: pages of Helvetica, of any size, encrypted if wanted (RC4, revision 2)."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")
"""PDF Reference 1.7, section 3.5.2, algorithm 3.2."""

_FILE_ID = bytes(16)
_PERMISSIONS = -4


class Page(NamedTuple):
    """Lines of text on a page of so many points; `content` instead of them draws anything."""

    lines: Sequence[str] = ()
    width: float = 595
    height: float = 842
    font_size: float = 10
    content: bytes | None = None


def pdf(pages: Sequence[Page], *, title: str | None = None, password: str | None = None) -> bytes:
    """The PDF file. With a `password` (which may be empty) it is encrypted for who knows it."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(count))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: f"<< /Type /Pages /Count {count} /Kids [{kids}] >>".encode(),
        3: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    }
    key = None if password is None else _key(password)
    for index, page in enumerate(pages):
        number = 4 + 2 * index
        objects[number] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {page.width} {page.height}]"
            f" /Resources << /Font << /F 3 0 R >> >> /Contents {number + 1} 0 R >>"
        ).encode()
        content = _lines(page) if page.content is None else page.content
        content = content if key is None else _rc4(_object_key(key, number + 1), content)
        objects[number + 1] = b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)
    return _file(objects, title, key)


def _lines(page: Page) -> bytes:
    leading = page.font_size * 1.4
    text = b" T* ".join(b"(%s) Tj" % line.encode("cp1252").translate(_ESCAPED) for line in page.lines)
    return b"BT /F %g Tf %g TL 40 %g Td %s ET" % (page.font_size, leading, page.height - 60, text)


_ESCAPED = bytes(32 if chr(code) in "()\\" else code for code in range(256))


def _file(objects: dict[int, bytes], title: str | None, key: bytes | None) -> bytes:
    trailer = f"/Root 1 0 R /Size {len(objects) + 2} /ID [<{_FILE_ID.hex()}> <{_FILE_ID.hex()}>]"
    number = len(objects) + 1
    if title is not None:
        encoded = b"\xfe\xff" + title.encode("utf-16-be", "surrogatepass")
        encoded = encoded if key is None else _rc4(_object_key(key, number), encoded)
        objects[number] = f"<< /Title <{encoded.hex()}> >>".encode()
        trailer += f" /Info {number} 0 R"
    if key is not None:
        user = _rc4(key, _PADDING).hex()
        trailer += (
            f" /Encrypt << /Filter /Standard /V 1 /R 2 /O <{_OWNER.hex()}> /U <{user}> /P {_PERMISSIONS} /Length 40 >>"
        )
    out, places = bytearray(b"%PDF-1.4\n"), {}
    for number, body in sorted(objects.items()):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    last = max(places) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % last
    out += b"".join(b"%010d 00000 n \n" % places[number] for number in range(1, last))
    return bytes(out + b"trailer\n<< %s >>\nstartxref\n%d\n%%%%EOF\n" % (trailer.encode(), start))


_OWNER = bytes(range(32))


def _key(password: str) -> bytes:
    padded = (password.encode("latin-1") + _PADDING)[:32]
    return hashlib.md5(padded + _OWNER + _PERMISSIONS.to_bytes(4, "little", signed=True) + _FILE_ID).digest()[:5]


def _object_key(key: bytes, number: int) -> bytes:
    return hashlib.md5(key + number.to_bytes(3, "little") + bytes(2)).digest()[:10]


def _rc4(key: bytes, data: bytes) -> bytes:
    state, swap = list(range(256)), 0
    for index in range(256):
        swap = (swap + state[index] + key[index % len(key)]) & 255
        state[index], state[swap] = state[swap], state[index]
    out, first, second = bytearray(), 0, 0
    for byte in data:
        first = (first + 1) & 255
        second = (second + state[first]) & 255
        state[first], state[second] = state[second], state[first]
        out.append(byte ^ state[(state[first] + state[second]) & 255])
    return bytes(out)

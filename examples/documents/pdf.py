"""A small writer of PDF files: A4 pages of text in Helvetica that can be selected and searched.

A PDF is numbered objects, a table of where each begins, and a trailer that names the first. Helvetica is one of the
fonts that every reader has, so none needs to be embedded; only its widths are needed, to break the lines.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .library import Document

PAGE_WIDTH, PAGE_HEIGHT = 595, 842
"""A4 in points, 72 to an inch."""
MARGIN = 72

# The advance widths of the characters from 32 to 126 in thousandths of the font size, from Adobe's font metrics.
_REGULAR = (
    *(278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278),
    *(556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556),
    *(1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778),
    *(667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556),
    *(333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556),
    *(556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584),
)
_BOLD = (
    *(278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278),
    *(556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 333, 333, 584, 584, 584, 611),
    *(975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833, 722, 778),
    *(667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556),
    *(333, 556, 611, 556, 611, 556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611),
    *(611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389, 280, 389, 584),
)


@dataclass(frozen=True)
class Style:
    """How a paragraph is set: font size, distance between lines, space before, all in points."""

    size: float
    leading: float
    before: float
    bold: bool = False

    def width(self, text: str) -> float:
        """The width of a line in points; characters without a known width count as an average one."""
        table = _BOLD if self.bold else _REGULAR
        units = (table[ord(letter) - 32] if 32 <= ord(letter) <= 126 else 556 for letter in text)
        return sum(units) * self.size / 1_000


TITLE = Style(26, 30, 0, bold=True)
HEADING = Style(15, 21, 20, bold=True)
BODY = Style(12, 18, 9)
FOOTER = Style(9, 12, 0)


@dataclass(frozen=True)
class Line:
    """A line at its place on the page."""

    style: Style
    x: float
    y: float
    text: str


def pages(document: Document) -> tuple[tuple[Line, ...], ...]:
    """The document set in lines, page by page. A heading is never the last line of a page."""
    made: list[list[Line]] = [[]]
    y = float(PAGE_HEIGHT - MARGIN)
    for style, paragraph in _paragraphs(document):
        lines = list(_broken(paragraph, style, PAGE_WIDTH - 2 * MARGIN))
        needed = style.leading * (3 if style is HEADING else min(2, len(lines)))
        y -= style.before if made[-1] else 0
        if y - needed < MARGIN:
            made.append([])
            y = float(PAGE_HEIGHT - MARGIN)
        for text in lines:
            if y - style.leading < MARGIN:
                made.append([])
                y = float(PAGE_HEIGHT - MARGIN)
            y -= style.leading
            made[-1].append(Line(style, MARGIN, y, text))
    for number, lines in enumerate(made, start=1):
        text = f"{document.title}  -  page {number} of {len(made)}"
        lines.append(Line(FOOTER, (PAGE_WIDTH - FOOTER.width(text)) / 2, MARGIN / 2, text))
    return tuple(tuple(lines) for lines in made)


def pdf(document: Document, page: int | None = None) -> bytes:
    """The document, or one page of it counted from 1, as a PDF file. Raises IndexError for a page that is not there."""
    made = pages(document)
    if page is not None and not 1 <= page <= len(made):
        raise IndexError(f"{document.name} has {len(made)} page{'s' * (len(made) > 1)}: page {page} is not there")
    return _file(made if page is None else made[page - 1 : page], document.title)


def _paragraphs(document: Document) -> Iterator[tuple[Style, str]]:
    for number, section in enumerate(document.sections):
        yield (HEADING if number else TITLE), section.heading
        for paragraph in section.paragraphs:
            yield BODY, paragraph


def _broken(text: str, style: Style, room: float) -> Iterator[str]:
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and style.width(longer) > room:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _file(made: Sequence[Sequence[Line]], title: str) -> bytes:
    """The objects, one after another: catalogue, pages, two fonts, information, then page and content in turn."""
    first = 6
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(len(made)))
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en) >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(made)} >>".encode(),
        (font % "Helvetica").encode(),
        (font % "Helvetica-Bold").encode(),
        b"<< /Title " + _string(title) + b" /Producer (examples.documents) >>",
    ]
    for index, lines in enumerate(made):
        content = zlib.compress(_content(lines), 9)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {PAGE_WIDTH} {PAGE_HEIGHT}] "
            f"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents {first + 2 * index + 1} 0 R >>".encode()
        )
        head = f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + content + b"\nendstream")
    file = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets: list[int] = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(file))
        file += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = len(file)
    file += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    file += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    file += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{table}\n%%EOF\n".encode()
    return bytes(file)


def _content(lines: Sequence[Line]) -> bytes:
    return b"\n".join(
        f"BT /F{2 if line.style.bold else 1} {line.style.size:g} Tf 1 0 0 1 {line.x:.2f} {line.y:.2f} Tm ".encode()
        + _string(line.text)
        + b" Tj ET"
        for line in lines
    )


def _string(text: str) -> bytes:
    """A string as PDF writes it, in the Windows code page that WinAnsiEncoding names."""
    escaped = text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return b"(" + escaped.encode("cp1252", errors="replace") + b")"

"""The cases: what a tool returns, drawn here so that no two pictures are alike."""

import base64
import io
import json
import random
import struct
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from PIL import Image

MANY = 26
"""Pictures in one result: as many as a scanned document has pages, and below every limit on a request that is known
of OpenAI, Anthropic and Gemini."""


@dataclass(frozen=True)
class Case:
    """Calls that a model makes at once, each of a tool with this result."""

    title: str
    results: Mapping[str, Mapping[str, Any]]

    @property
    def whole(self) -> Mapping[str, Any]:
        """The results as one, which is what the model has to see."""
        if len(self.results) == 1:
            return next(iter(self.results.values()))
        return {"content": [block for result in self.results.values() for block in result["content"]]}


@cache
def cases() -> Mapping[str, Case]:
    """Every case by its name."""
    chart = picture("PNG", seed=1)
    page = {"uri": "case://report.pdf", "mimeType": "application/pdf", "blob": document("Soundings of the harbour")}
    link = {"type": "resource_link", "uri": "case://charts/harbour", "name": "harbour", "mimeType": "text/html"}
    depths = {"depth": 41, "unit": "metres", "place": "the harbour mouth at Falmouth"}
    results: dict[str, tuple[str, dict[str, Any]]] = {
        "text": ("text", content(text("The harbour is 41 metres deep at its mouth."))),
        "chart": ("a text and a PNG", content(text("A chart of the harbour."), image(chart))),
        "photo": ("a JPEG of 12 megapixels", content(image(photo(), "image/jpeg"))),
        "webp": ("a WebP", content(image(picture("WEBP", seed=2), "image/webp"))),
        "gif": ("a GIF", content(image(picture("GIF", seed=3), "image/gif"))),
        "svg": ("an SVG", content(text("A drawing of a buoy."), image(DRAWING, "image/svg+xml"))),
        "in_turn": (
            "texts and pictures in turn",
            content(text("The first sounding."), image(chart), text("The second sounding."), image(other())),
        ),
        "many": (f"{MANY} pictures", content(*(image(picture("PNG", seed=100 + n)) for n in range(MANY)))),
        "mislabelled": ("a PNG labelled as JPEG", content(image(chart, "image/jpeg"))),
        "embedded": (
            "a PNG in a resource",
            content(resource(uri="case://chart.png", mimeType="image/png", blob=chart)),
        ),
        "in_text": (
            "a PNG as a data URI in text",
            content(text(f"Plot of the harbour: ![plot](data:image/png;base64,{chart})")),
        ),
        "pdf": ("a PDF", content(resource(**page))),
        "sound": ("sound", content(text("The fog horn."), audio(horn()))),
        "resource": (
            "text in a resource",
            content(resource(uri="case://depths.md", mimeType="text/markdown", text="# Depths of the harbour")),
        ),
        "link": ("a link", content(text("The chart is kept elsewhere."), link)),
        "structured": ("structured content alone", {"content": [], "structuredContent": depths}),
        "structured_chart": (
            "structured content beside a PNG",
            {**content(text(json.dumps(depths)), image(chart)), "structuredContent": depths},
        ),
        "error": (
            "an error with a PNG",
            content(text("Error: the harbour could not be measured."), image(chart), isError=True),
        ),
        "long": ("30,000 characters", content(text("Soundings by the minute.\n" + "12 fathoms, sand.\n" * 1_666))),
        "nothing": ("nothing", content()),
    }
    single = {name: Case(title, {name: result}) for name, (title, result) in results.items()}
    both = {"chart": results["chart"][1], "webp": results["webp"][1]}
    return {**single, "at_once": Case("two calls at once, a picture each", both)}


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": words}


def image(data: str, media_type: str = "image/png") -> dict[str, Any]:
    """An image block."""
    return {"type": "image", "data": data, "mimeType": media_type}


def audio(data: str) -> dict[str, Any]:
    """A block of sound."""
    return {"type": "audio", "data": data, "mimeType": "audio/wav"}


def resource(**members: str) -> dict[str, Any]:
    """An embedded resource."""
    return {"type": "resource", "resource": members}


def content(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A result with these blocks."""
    return {"content": list(blocks), **more}


def picture(kind: str, *, seed: int, size: tuple[int, int] = (96, 64)) -> str:
    """A picture of 24 coloured squares, as base64."""
    squares = Image.frombytes("RGB", (6, 4), random.Random(seed).randbytes(6 * 4 * 3))
    out = io.BytesIO()
    squares.resize(size, Image.Resampling.NEAREST).save(out, kind)
    return _base64(out.getvalue())


def other() -> str:
    """A second PNG."""
    return picture("PNG", seed=4)


def photo() -> str:
    """A large JPEG."""
    return picture("JPEG", seed=5, size=(4000, 3000))


def horn() -> str:
    """A tenth of a second of sound."""
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"".join(struct.pack("<h", random.Random(n).randrange(-9000, 9000)) for n in range(800)))
    return _base64(out.getvalue())


def document(words: str) -> str:
    """A PDF of one page that says these words."""
    drawn = f"BT /F1 18 Tf 40 100 Td ({words}) Tj ET"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Resources << /Font << /F1 3 0 R >> >> "
        "/Contents 5 0 R >>",
        f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
    )
    out, places = "%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return _base64(f"{out}xref\n0 6\n0000000000 65535 f \n{table}{end}".encode())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


DRAWING = _base64(
    b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><circle cx="30" cy="20" r="15" fill="red"/></svg>'
)

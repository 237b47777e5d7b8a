"""The 35 results on which other libraries were measured (docs/models/peers.toml): 25 core, 8 of hygiene, 2 at limits.

What each has to bring about is said with it, so that no test needs to ask
the gateway what is right.
"""

import base64
import io
from dataclasses import dataclass
from typing import Any

from PIL import Image


@dataclass(frozen=True)
class Case:
    """The results of one turn, how many pieces of media they hold, and words that the model has to get."""

    results: tuple[dict[str, Any], ...]
    pieces: int = 0
    words: tuple[str, ...] = ()

    @property
    def is_error(self) -> bool:
        return any(result.get("isError") for result in self.results)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The results as calls."""
        return [
            {"id": f"call{number:05}", "name": f"tool_{number}", "arguments": {}, "result": result}
            for number, result in enumerate(self.results)
        ]


def picture(image_format: str, size: tuple[int, int] = (40, 30), colour: str = "red") -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, image_format)
    return base64.b64encode(buffer.getvalue()).decode()


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


PNG, BLUE, JPEG, TIFF = picture("PNG"), picture("PNG", colour="blue"), picture("JPEG"), picture("TIFF")
SVG = encoded(b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><path d="M0 0h9v9z"/></svg>')
WAV = encoded(b"RIFF\x64\0\0\0WAVEfmt " + bytes(100))
MP3 = encoded(b"ID3\x04\0\0\0\0\0\0" + bytes(100))
PDF = encoded(b"%PDF-1.4\n" + bytes(100))
MP4 = encoded(b"\0\0\0\x18ftypisom" + bytes(100))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(data: str = PNG, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type, **more}


def audio(data: str, media_type: str) -> dict[str, Any]:
    return {"type": "audio", "data": data, "mimeType": media_type}


def blob(data: str, uri: str, media_type: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "blob": data, "mimeType": media_type}}


def link(uri: str, **more: Any) -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": "the chart", **more}


def one(*blocks: dict[str, Any], pieces: int = 0, words: tuple[str, ...] = (), **rest: Any) -> Case:
    return Case(({"content": list(blocks), **rest},), pieces, words)


RESOURCE = {"type": "resource", "resource": {"uri": "notes://1", "mimeType": "text/plain", "text": "a note"}}
USER_ONLY = {"audience": ["user"], "priority": 0.3}

CORE: dict[str, Case] = {
    "text": one(text("just words"), words=("just words",)),
    "png": one(image(), pieces=1),
    "text image x2": one(text("first"), image(), text("second"), image(BLUE), pieces=2, words=("first", "second")),
    "audio wav": one(audio(WAV, "audio/wav"), pieces=1),
    "audio mp3": one(audio(MP3, "audio/mpeg"), pieces=1),
    "pdf blob": one(blob(PDF, "docs://q3/final_report.v2.pdf", "application/pdf"), pieces=1),
    "text resource": one(RESOURCE, words=("a note", "notes://1")),
    "image blob": one(blob(PNG, "shots://1.png", "image/png"), pieces=1),
    "video blob": one(blob(MP4, "clips://one.mp4", "video/mp4"), pieces=1),
    "link image": one(
        link("https://example.com/chart.png", mimeType="image/png"), words=("https://example.com/chart",)
    ),
    "link opaque": one(link("charts://7"), words=("charts://7",)),
    "structured only": one(structuredContent={"degrees": 31}, words=("degrees", "31")),
    "structured plus text": one(text("31 degrees"), structuredContent={"degrees": 31}, words=("31 degrees",)),
    "structured plus image": one(image(), structuredContent={"degrees": 31}, pieces=1, words=("degrees",)),
    "error text": one(text("it broke"), isError=True, words=("it broke",)),
    "error image": one(text("it broke"), image(), isError=True, pieces=1, words=("it broke",)),
    "empty": one(),
    "empty text": one(text("")),
    "empty text image": one(text(""), image(), pieces=1),
    "svg": one(image(SVG, "image/svg+xml"), pieces=1),
    "unknown mime": one(blob(encoded(b"\0\1\2" * 50), "x://y", "application/x-thing"), pieces=1),
    "tiff image": one(image(TIFF, "image/tiff"), pieces=1),
    "parallel img first": Case(({"content": [image()]}, {"content": [text("second")]}), 1, ("second",)),
    "parallel both img": Case(({"content": [image()]}, {"content": [text("second"), image(BLUE)]}), 2, ("second",)),
    "annotated": one(
        {**text("for you"), "annotations": USER_ONLY},
        image(annotations={"audience": ["assistant"]}, _meta={"x/y": 1}),
        pieces=1,
        words=("for you",),
    ),
}
HYGIENE: dict[str, Case] = {
    "mislabelled": one(image(JPEG, "image/png"), pieces=1),
    "newlines": one(image("\n".join(PNG[at : at + 60] for at in range(0, len(PNG), 60))), pieces=1),
    "datauri": one(image(f"data:image/png;base64,{PNG}"), pieces=1),
    "mime case": one(image(PNG, "IMAGE/PNG"), pieces=1),
    "image jpg": one(image(JPEG, "image/jpg"), pieces=1),
    "audio x wav": one(audio(WAV, "audio/x-wav"), pieces=1),
    "octet png": one(blob(PNG, "shots://1", "application/octet-stream"), pieces=1),
    "blob text": one(blob(encoded(b"a,b\n1,2\n"), "tables://1.csv", "text/csv"), words=("tables://1.csv", "a,b")),
}
LIMITS: dict[str, Case] = {
    "25 images": one(*(image(picture("PNG", (8 + number, 8))) for number in range(25)), pieces=25),
    "6 pdfs": one(*(blob(PDF, f"docs://{number}.pdf", "application/pdf") for number in range(6)), pieces=6),
}
CASES: dict[str, Case] = {**CORE, **HYGIENE, **LIMITS}

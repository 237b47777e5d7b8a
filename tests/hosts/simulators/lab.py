"""The inputs of the measurements, made anew: the result of every case of the matrix (facts of 2026-11-20), and what the
tests of shaping need beside them: an SVG that shows something, a PDF with text in it, several blocks together."""

import base64
import io
import json
import random
import struct
import wave
from collections.abc import Mapping
from typing import Any

from PIL import Image


def _b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _picture(media_type: str, size: tuple[int, int] = (24, 16), seed: int = 1) -> str:
    image = Image.frombytes("RGB", (6, 4), random.Random(seed).randbytes(6 * 4 * 3))
    out = io.BytesIO()
    image.resize(size, Image.Resampling.NEAREST).save(out, media_type)
    return _b64(out.getvalue())


def _moving() -> str:
    """A GIF of three frames."""
    frames = [Image.frombytes("RGB", (6, 4), random.Random(at).randbytes(72)).resize((24, 16)) for at in (30, 31, 32)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], duration=100, loop=0)
    return _b64(out.getvalue())


def _noise(base64_chars: int) -> str:
    """A PNG of noise, which does not get smaller, with about so many characters of base64."""
    side = int((base64_chars * 0.75 / 3) ** 0.5)
    out = io.BytesIO()
    Image.frombytes("RGB", (side, side), random.Random(2).randbytes(side * side * 3)).save(out, "PNG", compress_level=1)
    return _b64(out.getvalue())


def _large() -> str:
    """A PNG of 4000 x 3000 pixels, most of them blue."""
    image = Image.new("RGB", (4000, 3000), "navy")
    image.paste(Image.frombytes("RGB", (4000, 4), random.Random(3).randbytes(4000 * 4 * 3)), (0, 2996))
    out = io.BytesIO()
    image.save(out, "PNG")
    return _b64(out.getvalue())


def _wav() -> str:
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"".join(struct.pack("<h", random.Random(3 + i).randrange(-9000, 9000)) for i in range(900)))
    return _b64(out.getvalue())


def _pdf() -> str:
    out = io.BytesIO()
    Image.new("RGB", (40, 40), "teal").save(out, "PDF")
    return _b64(out.getvalue())


SVG = _b64(b'<svg xmlns="http://www.w3.org/2000/svg"/>')
MEDIA = {
    "png": _picture("PNG"),
    "png2": _picture("PNG", seed=5),
    "jpeg": _picture("JPEG"),
    "webp": _picture("WEBP"),
    "gif": _picture("GIF"),
    "wav": _wav(),
    "pdf": _pdf(),
}


def _pdf_with_text(*pages: str) -> str:
    """A PDF whose pages say these words."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, words in enumerate(pages):
        drawn = f"BT /F1 18 Tf 40 100 Td ({words}) Tj ET"
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Resources << /Font << /F1 3 0 R >> >> "
            f"/Contents {5 + 2 * number} 0 R >>",
            f"<< /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
        ]
    out, places = "%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    tail = (
        f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n"
    )
    return _b64(f"{out}{tail}%%EOF\n".encode())


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def image(data: str, media_type: str = "image/png", **more: Any) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": media_type, **more}


def embedded(**contents: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": "lab://res/it", **contents}}


def content(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"content": list(blocks), **more}


_TWIN = {"depth": 41, "unit": "m", "place": "the harbour mouth at Falmouth"}
_USER_ONLY = {"annotations": {"audience": ["user"]}, "_meta": {"lab": 1}}
RESULTS: Mapping[str, dict[str, Any]] = {
    "png": content(image(MEDIA["png"])),
    "jpeg": content(image(MEDIA["jpeg"], "image/jpeg")),
    "webp": content(image(MEDIA["webp"], "image/webp")),
    "gif": content(image(MEDIA["gif"], "image/gif")),
    "svg": content(image(SVG, "image/svg+xml")),
    "wav": content({"type": "audio", "data": MEDIA["wav"], "mimeType": "audio/wav"}),
    "res_text": content(embedded(mimeType="text/markdown", text="# Depths")),
    "res_pdf": content(embedded(mimeType="application/pdf", blob=MEDIA["pdf"])),
    "res_png": content(embedded(mimeType="image/png", blob=MEDIA["png"])),
    "link_png": content({"type": "resource_link", "uri": "lab://img/s.png", "name": "s", "mimeType": "image/png"}),
    "struct_only": {"content": [], "structuredContent": _TWIN},
    "struct_text": content(text(json.dumps(_TWIN)), structuredContent=_TWIN),
    "struct_text_image": content(
        text("PROSE about the harbour"), image(MEDIA["png"]), structuredContent={"fact": "STRUCTURE"}
    ),
    "err_text_image": content(text("PROSE: no such harbour"), image(MEDIA["png"]), isError=True),
    "mixed": content(text("PROSE one"), image(MEDIA["png"]), text("PROSE two"), image(MEDIA["png2"])),
    "meta_aud": content(image(MEDIA["png"], **_USER_ONLY), image(MEDIA["png2"], _meta={"lab": 2})),
    "empty": content(),
    "badmime": content(image(MEDIA["png"], "image/jpeg")),
    "badbytes": content(image(_b64(b"these bytes are not an image"))),
    "dims": content(image(_large())),
    "png_2mb": content(image(_noise(2_003_152))),
    "png_6mb": content(image(_noise(6_012_612))),
    "text_200k": content(text(("lorem ipsum dolor sit amet consec\n" * 5_883)[:200_000])),
}


# -- beside the measured cases -----------------------------------------------------------------------------------------

DRAWN = _b64(b'<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40"><circle r="30" fill="red"/></svg>')
"""An SVG that shows something; the measured one is empty, and short enough not to be told from words in base64."""


def _wrapped(data: str) -> str:
    return "\n".join(data[at : at + 76] for at in range(0, len(data), 76))


_SOUND = {"type": "audio", "data": MEDIA["wav"], "mimeType": "audio/wav"}
_LINK = {"type": "resource_link", "uri": "lab://charts/harbour", "name": "chart", "mimeType": "text/html"}
_PAGES = embedded(
    mimeType="application/pdf", blob=_pdf_with_text("PROSE of the first sounding", "PROSE of the second sounding")
)
SHAPED: Mapping[str, dict[str, Any]] = {
    **RESULTS,
    "svg": content(image(DRAWN, "image/svg+xml")),
    "pdf_with_text": content(_PAGES),
    "every_kind": content(
        text("PROSE before all of it"),
        image(MEDIA["png"]),
        _SOUND,
        embedded(mimeType="text/markdown", text="# Depths in the harbour"),
        _PAGES,
        embedded(mimeType="image/png", blob=MEDIA["png2"]),
        _LINK,
        text("PROSE after all of it"),
        structuredContent={"measured": "STRUCTURE of the harbour floor", "depth": 41},
    ),
    "every_image_type": content(
        text("PROSE about five drawings"),
        image(_picture("BMP", seed=8), "image/bmp"),
        image(MEDIA["jpeg"], "image/jpeg"),
        image(_picture("WEBP", seed=6), "image/webp"),
        image(_picture("GIF", seed=7), "image/gif"),
        image(DRAWN, "image/svg+xml"),
    ),
    "eight_images": content(*(image(_picture("PNG", seed=seed)) for seed in range(20, 28))),
    "error_of_every_kind": content(
        text("PROSE: the harbour cannot be measured"), image(MEDIA["png"]), _SOUND, _PAGES, _LINK, isError=True
    ),
    "long_error": content(text("PROSE of a failure\n" + "word " * 40_000), isError=True),
    "error_alone": content(text("PROSE: there is no such harbour"), isError=True),
    "error_without_words": content(image(MEDIA["png"]), isError=True),
    "image_twice": content(text("PROSE beside it"), image(MEDIA["png"]), structuredContent={"plot": MEDIA["png"]}),
    "content_twice": content(
        text("PROSE beside it"),
        image(MEDIA["png"]),
        structuredContent={"content": [text("PROSE beside it"), image(MEDIA["png"])]},
    ),
    "image_in_text": content(text(f"PROSE around ![a plot](data:image/png;base64,{MEDIA['png']}) a plot")),
    "image_in_structure": {"content": [], "structuredContent": {"name": "harbour plot", "png": MEDIA["png"]}},
    "long_text_and_image": content(text("PROSE first\n" + "word " * 40_000), image(MEDIA["png"])),
    "long_text_and_sound": content(text("PROSE first\n" + "word " * 40_000), _SOUND, text("PROSE last")),
    "long_structure": {"content": [], "structuredContent": {"rows": [f"row number {at}" for at in range(20_000)]}},
    "moving_image": content(image(_moving(), "image/gif"), text("PROSE about what moves")),
    "wrapped_base64": content(text("PROSE beside it"), image(_wrapped(MEDIA["png"]))),
    "image_as_a_stream_of_bytes": content(embedded(mimeType="application/octet-stream", blob=MEDIA["jpeg"])),
    "unknown_block": content(text("PROSE beside it"), {"type": "hologram", "data": "of a harbour"}),
    "large_and_small": content(image(_large()), text("PROSE between the two"), image(MEDIA["png2"])),
    "empty_texts": content(text(""), text("PROSE between empty ones"), text("")),
}
"""What the gateway shapes for every host: the measured results, and some that hold several things at once."""

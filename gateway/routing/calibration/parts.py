"""The parts of a calibration as tool results, in the form in which an upstream would return them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio.to_thread
import pybase64
from PIL.Image import Image

from gateway.core.model.effects import FitImage, ImageTarget, MediaWork
from gateway.core.profiles.calibrate_profile import KINDS, LARGE_EDGE, PARTS, PLAIN, TEXTS
from gateway.routing.calibration import digits, samples
from gateway.routing.calibration.wording import instruction

Codes = Mapping[str, str]
"""The code of each block."""

_LARGE = (LARGE_EDGE, 3_000)
_FINE_AT = (301, 203)  # odd, so that halving blurs what is two pixels wide


async def result_of(part: str, codes: Codes, media: MediaWork) -> dict[str, Any]:
    """The raw CallToolResult that shows a part. Drawing takes up to a second, in a thread.

    Raises MediaError if the SVG cannot be drawn.
    """
    if part == "other pictures":
        target = ImageTarget(("image/png",))
        drawn = await media.run(FitImage(part, digits.vector(codes["svg"]), "image/svg+xml", target))
        return _result(part, _image(codes, "webp"), _image(codes, "gif"), _block("image", drawn.data, drawn.media_type))
    return await anyio.to_thread.run_sync(partial(_MADE[part], part, codes))


def _pictures(part: str, codes: Codes) -> dict[str, Any]:
    return _result(part, _image(codes, "png"), _image(codes, "jpeg"), code=codes[PLAIN])


def _several(part: str, codes: Codes) -> dict[str, Any]:
    small = (_png(digits.draw_code(codes[block], (320, 110), 8)) for block in PARTS[part])
    return _result(part, *small)


def _large(part: str, codes: Codes) -> dict[str, Any]:
    image = digits.draw_code(codes["large"], _LARGE, 90)
    digits.written(image, codes["fine"], 2, _FINE_AT)
    return _result(part, _png(image))


def _embedded(part: str, codes: Codes) -> dict[str, Any]:
    content = digits.encoded(digits.draw_code(codes["embedded"]), "PNG")
    return _result(part, _resource("picture.png", "image/png", content))


def _document(part: str, codes: Codes) -> dict[str, Any]:
    return _result(part, _resource("page.pdf", "application/pdf", samples.document(codes["document"])))


def _sound(part: str, codes: Codes) -> dict[str, Any]:
    return _result(part, _block("audio", _base64(samples.sound(codes["sound"])), "audio/wav"))


def _error(part: str, codes: Codes) -> dict[str, Any]:
    return {**_result(part, _picture_of(codes["error picture"]), code=codes["error text"]), "isError": True}


def _structured(part: str, codes: Codes) -> dict[str, Any]:
    shown = _result(part, _picture_of(codes["picture beside"]), code=codes["text beside"])
    # A host that shows this in place of all content shows no other instruction.
    return {**shown, "structuredContent": {"what": instruction(part), "code": codes["structured"]}}


def _long_text(part: str, codes: Codes) -> dict[str, Any]:
    # The instruction comes first, and one code at the very end: hosts cut the end, or somewhere in the middle.
    whole, length = f"{instruction(part)}\n", TEXTS[part]
    for place, block in zip((length // 4, length // 2, length), PARTS[part], strict=True):
        code = f"\nThe code in this line is {codes[block]}.\n"
        whole += _filler(place - len(whole) - len(code)) + code
    return {"content": [_text(whole)]}


def _filler(length: int) -> str:
    line = "nothing to read in this line, go on with the next one\n"
    return (line * (length // len(line) + 1))[:length]


_MADE: Mapping[str, Callable[[str, Codes], dict[str, Any]]] = {
    "pictures": _pictures,
    "several pictures": _several,
    "a large picture": _large,
    "an embedded picture": _embedded,
    "a document": _document,
    "an error": _error,
    "structured content": _structured,
    **dict.fromkeys(TEXTS, _long_text),
    "sound": _sound,
}


def _result(part: str, *blocks: dict[str, Any], code: str | None = None) -> dict[str, Any]:
    """Return a result with all its text in the first block: some hosts read no other."""
    words = instruction(part) if code is None else f"{instruction(part)}\nThe code in this line is {code}."
    return {"content": [_text(words), *blocks]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(codes: Codes, kind: str) -> dict[str, Any]:
    return _block("image", _base64(digits.encoded(digits.draw_code(codes[kind]), kind.upper())), KINDS[kind])


def _picture_of(code: str) -> dict[str, Any]:
    return _png(digits.draw_code(code))


def _png(image: Image) -> dict[str, Any]:
    return _block("image", _base64(digits.encoded(image, "PNG")), "image/png")


def _block(kind: str, data: str, media_type: str) -> dict[str, Any]:
    return {"type": kind, "data": data, "mimeType": media_type}


def _resource(name: str, media_type: str, content: bytes) -> dict[str, Any]:
    uri = f"calibration:///{name}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "blob": _base64(content)}}


def _base64(content: bytes) -> str:
    return pybase64.b64encode_as_string(content)

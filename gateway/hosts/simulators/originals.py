"""Finding the images in a tool's own result, wherever they are."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.model.json_values import as_list, is_dict, is_list
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.pictures import Picture, look
from gateway.hosts.simulators.results import VECTOR

_DATA_URI = re.compile(r"data:image/[\w.+-]+(?:;[^,;\s]{1,64}){0,4};base64,([A-Za-z0-9+/_-]+={0,2})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]{64,}+={0,2}+\s*+\Z")
# Possessive throughout: a backtracking pattern would take exponential time on a hostile prologue.
_SVG = re.compile(
    rb"\A(?:\xef\xbb\xbf)?+\s*+(?:<\?xml[^>]*+>\s*+)?+(?><!--(?>.*?-->)\s*+)*+(?:<!DOCTYPE[^>\[]*+>\s*+)?+<svg\b[^>]*+>",
    re.DOTALL,
)
_LENGTH = r"""\s%s\s*=\s*["']\s*([\d.]+)(?:px)?\s*["']"""
_VIEW_BOX = re.compile(r"""\sviewBox\s*=\s*["']\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)""")


@dataclass(frozen=True)
class OriginalImage:
    """One image of a result: its base64, its type by its bytes, its place, and width divided by height.

    `picture` is None for a vector image, which has no pixels of its own.
    """

    data: str
    media_type: str
    place: str
    aspect: float
    picture: Picture | None


def original_images(result: Mapping[str, Any]) -> tuple[OriginalImage, ...]:
    """Return every decodable image of an upstream's result, in order, each once however often it occurs.

    These are image blocks, embedded resources, data URIs in text, and base64 in structured content or in JSON text.
    """
    found: dict[str, OriginalImage] = {}
    for text, place in _candidates(result):
        for data in _base64_in(text):
            image = _image(data, place)
            if image is not None:
                found.setdefault(hashlib.sha256(base64.b64decode(image.data)).hexdigest(), image)
    return tuple(found.values())


def expected_images(result: Mapping[str, Any], host: SimulatedHost) -> tuple[OriginalImage, ...]:
    """Return the images of an upstream's result that this host can show its model, if sent in a form that it accepts.

    That is all decodable ones (a vector image can be drawn first), or none if the host shows no images.
    """
    return original_images(result) if host.shows_images else ()


def _candidates(result: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield strings that may hold an image, with their places."""
    content = result.get("content")
    blocks = as_list(content)
    for index, block in enumerate(blocks):
        yield from _block_candidates(block, f"content[{index}]")
    for text in _strings(result.get("structuredContent")):
        yield text, "structured content"


def _block_candidates(block: Any, place: str) -> Iterator[tuple[str, str]]:
    match block:
        case {"type": "image" | "audio", "data": str(data)}:
            yield data, place
        case {"type": "resource", "resource": {"blob": str(blob)}}:
            yield blob, f"{place} (embedded)"
        case {"type": "text", "text": str(text)}:
            yield text, f"{place} (text)"
            for hidden in _strings(_parsed(text)):
                yield hidden, f"{place} (JSON in text)"
        case _:
            pass


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _strings(value: Any) -> Iterator[str]:
    stack: list[Any] = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            yield part
        elif is_dict(part):
            stack.extend(reversed(part.values()))
        elif is_list(part):
            stack.extend(reversed(part))


def _base64_in(text: str) -> Iterator[str]:
    if _BASE64.match(text):
        yield text
    else:
        yield from (match[1] for match in _DATA_URI.finditer(text))


def _image(data: str, place: str) -> OriginalImage | None:
    plain = "".join(data.split()).rstrip("=").replace("-", "+").replace("_", "/")
    padded = plain + "=" * (-len(plain) % 4)
    if picture := look(padded):
        return OriginalImage(padded, picture.media_type, place, picture.aspect, picture)
    aspect = _svg_aspect(padded)
    return None if aspect is None else OriginalImage(padded, VECTOR, place, aspect, None)


def _svg_aspect(data: str) -> float | None:
    """Return width divided by height of a vector image; None for anything else."""
    try:
        start = _SVG.match(base64.b64decode(data[:16_384], validate=True))
    except (binascii.Error, ValueError):
        return None
    if start is None:
        return None
    tag = start[0].decode("utf-8", "replace")
    sides = [re.search(_LENGTH % side, tag) for side in ("width", "height")]
    box = _VIEW_BOX.search(tag)
    texts = [side[1] for side in sides if side] if all(sides) else list(box.groups()) if box else ["1", "1"]
    try:
        width, height = map(float, texts)
        return width / height
    except (ValueError, ZeroDivisionError):
        return 1.0

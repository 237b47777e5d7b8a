"""opencode 1.18.33 with models behind three kinds of API, measured (2026-11-20)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import (
    PDF,
    VECTOR,
    blob_of,
    blocks,
    dump,
    image_of,
    is_error,
    malformed,
    structured,
    texts_of,
)
from gateway.hosts.simulators.seen import (
    Seen,
    SeenDocument,
    SeenImage,
    SeenPart,
    SeenText,
    Where,
    failed_result,
    texts_first,
)

TEXT_CHARS = 51_200
"""Measured: of 60,000 characters and more about 51,500 arrive, the line about the rest included; 20,000 stay whole."""
MAX_EDGE = 2_000
MAX_BASE64 = 5_000_000
"""Measured: 2.0 MB of base64 stayed as it was, 6.0 MB became a JPEG of 2.80 MB. The limit lies between."""
FILE = "/home/user/.local/share/opencode/tool-output/tool_b21c7f03a001Zq4T9w2kXvBn0d"


@dataclass(frozen=True)
class Traits:
    """Differences between model APIs: `where` images and documents are placed."""

    where: Where


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of opencode gets.

    The effect of missing structured content was not measured, so `tool` is not used.
    """
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    if is_error(result):
        # Measured: text only, the image beside it is dropped. Whether the model learns of the flag was not.
        return Seen(tuple(_cut([SeenText(texts_of(result))])))
    if not blocks(result) and structured(result) is not None:  # measured: only if there is no content
        return Seen(tuple(_cut([SeenText(dump(structured(result)), "structured")])))
    parts = [part for block in blocks(result) for part in _parts(traits, block)]
    return Seen(tuple(_cut(list(texts_first(parts)))))  # measured: the texts come first


def _parts(traits: Traits, block: Mapping[str, Any]) -> list[SeenPart]:
    if image := image_of(block):  # measured: an embedded image is an image like any other
        return [_image(*image, traits.where)]
    if block["type"] == "text":
        return [SeenText(block["text"])] if block["text"] else []
    if block["type"] != "resource":
        return []  # measured: sound and links vanish without a word
    blob = blob_of(block)
    if blob is None:
        return [SeenText(block["resource"]["text"])]
    if blob[1] == PDF:  # measured
        return [SeenDocument(*blob, traits.where)]
    return [SeenText(f"[{blob[1]} omitted]", "placeholder")]  # other types: not measured, so taken as lost


def _image(data: str, media_type: str, where: Where) -> SeenPart:
    picture = look(data)
    if picture is None or media_type == VECTOR:  # measured for SVG and for bytes that are not an image
        return SeenText("[1 image omitted: it could not be processed]", "placeholder")
    width, height = picture.pixels
    factor = max(width, height) / MAX_EDGE
    if factor > 1:  # measured: 4000 x 3000 became 2000 x 1500
        pixels = (round(width / factor), round(height / factor))
        return SeenImage(data, media_type, pixels, where, f"the host scales it to {pixels[0]} x {pixels[1]}")
    note = "the host sends it as a smaller JPEG" if len(data) > MAX_BASE64 else None
    return SeenImage(data, media_type, picture.pixels, where, note)  # measured: sent as labelled


def _cut(parts: list[SeenPart]) -> list[SeenPart]:
    """Measured: of long text the head is kept, with the path of a file that has all of it, also next to an image."""
    text = "\n".join(part.text for part in parts if isinstance(part, SeenText))
    if len(text) <= TEXT_CHARS:
        return parts
    note = (
        f"\n\n...{len(text) - TEXT_CHARS} bytes truncated...\n\nThe tool call succeeded but the output was truncated. "
        f"Full output saved to: {FILE}\nUse Grep to search the full content or Read with offset and limit to view "
        "specific sections. Delegate this to a sub-agent where there is one, to save context."
    )
    rest = [part for part in parts if not isinstance(part, SeenText)]
    return [SeenText(text[:TEXT_CHARS] + note), *rest]


def _host(name: str, title: str, where: Where) -> SimulatedHost:
    # Measured: initialize at 2025-11-25; roots. It says nothing of the model or its API.
    return SimulatedHost(
        name=name,
        title=title,
        client_info={"name": "opencode", "version": "1.18.33"},
        revision="2025-11-25",
        capabilities={"roots": {}},
        see=partial(see, Traits(where)),
        shows=RASTER | {PDF},
    )


OPENCODE = _host("opencode", "opencode", "in the result")
"""With models of Anthropic, and with OpenAI's on the Responses API: the same cells."""
OPENCODE_COMPAT = _host("opencode-compat", "opencode, OpenAI-compatible API", "beside it")

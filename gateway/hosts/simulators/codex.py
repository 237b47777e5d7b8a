"""Codex 0.169.0 with gpt-5.5 on the Responses API, measured (2026-11-20)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import VECTOR, blocks, dump, malformed, structured
from gateway.hosts.simulators.seen import Seen, SeenImage, SeenPart, SeenText, failed_result

TEXT_CHARS = 47_984
"""Measured: the remainder of 60,000, 120,000 and 200,000 characters; 20,000 stay whole."""
PATCH = 32
PATCHES = 10_000
"""4000 x 3000 pixels became 3669 x 2752 (measured): exactly 10,000 patches of 32 pixels, by OpenAI's rule."""


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Codex gets.

    It never learns that a call failed (measured), so nothing is ever flagged. Missing structured content is not an
    error (measured), so `tool` is not used.
    """
    if problem := malformed(result):
        return failed_result(f"failed to parse tool result: {problem}", flagged=False)
    frame = SeenText("Wall time: 0.1000 seconds\nOutput:", "frame")
    if structured(result) is not None:  # measured: replaces text AND images
        parts: list[SeenPart] = [SeenText(dump(structured(result)), "structured")]
    else:
        parts = [_part(block) for block in blocks(result)]
    return Seen((frame, *_cut(parts)))


def _part(block: Mapping[str, Any]) -> SeenPart:
    """Convert one block; the order is kept (measured)."""
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case "image":
            return _image(block)
        case "audio":  # measured: a placeholder
            return SeenText("audio content omitted because it is not supported", "placeholder")
        case _:  # measured: embedded resources and links are JSON, base64 included, also that of an image
            return SeenText(dump(block), "json")


def _image(block: Mapping[str, Any]) -> SeenPart:
    picture = look(block["data"])
    if picture is None or block["mimeType"] == VECTOR:  # measured for SVG and for bytes that are not an image
        return SeenText("image content omitted because it could not be processed", "placeholder")
    pixels = fitted_size(*picture.pixels)
    note = None
    if pixels != picture.pixels:
        note = f"the host scales it to {pixels[0]} x {pixels[1]}"
    elif picture.media_type == "image/gif":  # measured
        note = "the host sends it as PNG"
    # The type sent is that of the bytes: a PNG labelled JPEG was fixed (measured). Detail is "original".
    return SeenImage(block["data"], picture.media_type, pixels, note=note)


def fitted_size(width: int, height: int) -> tuple[int, int]:
    """Return the size in pixels at which an image is sent: at most 10,000 whole patches."""
    if math.ceil(width / PATCH) * math.ceil(height / PATCH) <= PATCHES:
        return width, height
    scale = math.sqrt(PATCHES * PATCH * PATCH / (width * height))
    across, down = width * scale / PATCH, height * scale / PATCH
    scale *= min(math.floor(across) / across, math.floor(down) / down)
    return int(width * scale + 1e-6), int(height * scale + 1e-6)


def _cut(parts: Sequence[SeenPart]) -> list[SeenPart]:
    """Measured: of long text, head and tail are kept, also next to an image. All texts of a result count together."""
    total = sum(len(part.text) for part in parts if isinstance(part, SeenText))
    if total <= TEXT_CHARS:
        return list(parts)
    marker = f"…{total - TEXT_CHARS} chars truncated…"
    head = (TEXT_CHARS - len(marker)) // 2
    tail_from = total - (TEXT_CHARS - len(marker) - head)
    kept: list[SeenPart] = []
    at = 0
    for part in parts:
        if not isinstance(part, SeenText):
            kept.append(part)
            continue
        start, at = at, at + len(part.text)
        text = part.text[: max(0, head - start)]
        if start <= head < at:
            text += marker
        text += part.text[max(0, tail_from - start) :] if at > tail_from else ""
        if text:
            kept.append(SeenText(text, part.form))
    return kept


# Measured: initialize at 2025-06-18; elicitation by form and url.
CODEX = SimulatedHost(
    name="codex",
    title="Codex",
    client_info={"name": "codex-mcp-client", "version": "0.169.0", "title": "Codex"},
    revision="2025-06-18",
    capabilities={"elicitation": {"form": {}, "url": {}}, "experimental": {"codex/auth-change": {}}},
    see=see,
    shows=RASTER,
)

"""Claude Code 2.1.329 and 2.1.197, measured (2026-11-20)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from gateway.core.model.json_values import is_object
from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import (
    VECTOR,
    blob_of,
    blocks,
    dump,
    image_of,
    is_error,
    lacks_structured,
    malformed,
    plain_link_line,
    structured,
)
from gateway.hosts.simulators.seen import Seen, SeenImage, SeenPart, SeenText, failed_result

INLINE_CHARS = 50_000
"""Measured between 45,000 (inline) and 52,000 (a file); 50,000 is what its documentation says."""
PREVIEW_CHARS = 2_048
ERROR_CHARS = 11_000
"""From second-hand documentation: the text of an error is cut at about 11,000 characters."""
MAX_EDGE = 2_000
MAX_BASE64 = 2_000_000
"""Measured: 2.0 MB of base64 became a JPEG of 608 KB, 6.0 MB one of 649 KB."""
FILE = (
    "/home/user/.claude/projects/-home-user-project/3f0c8a52-6a1e-4f0e-9c55-1d2f6d0a7b31/tool-results/"
    "mcp-lab-give-1795219200000"
)
"""The file in which it saves what it does not show: a path of the real kind and length."""


@dataclass(frozen=True)
class Traits:
    """Differences between versions: whether a line after each image says where it is saved."""

    names_sources: bool = True


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Claude Code gets."""
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    if lacks_structured(result, tool):  # measured: such a call fails
        return failed_result("Tool has an output schema but did not return structured content")
    if is_error(result):  # measured: text only, the image beside it is dropped; flagged as an error
        text = "\n".join(block["text"] for block in blocks(result) if block["type"] == "text")
        return Seen((SeenText(text[:ERROR_CHARS] or "Error"),), flagged=True)
    parts = [part for block in blocks(result) for part in _parts(traits, block)]
    if structured(result) is not None:
        # Measured: structured content replaces the text and keeps the images, which then come first.
        # (User reports for 2.1.280 say that images go as well; what was measured on a newer version wins.)
        images = [part for part in parts if not isinstance(part, SeenText) or part.form == "frame"]
        parts = [*images, SeenText(dump(structured(result)), "structured")]
    if not parts:  # measured: a placeholder sentence
        return Seen((SeenText("(tool completed with no output)", "placeholder"),))
    return Seen(tuple(_spilled(parts, tool)))


def _parts(traits: Traits, block: Mapping[str, Any]) -> list[SeenPart]:
    """Convert one block: order is kept, audience ignored, links are never resolved (all measured)."""
    if (image := image_of(block)) and image[1] != VECTOR:
        return _image(traits, image[0])
    match block["type"]:
        case "text":
            return [SeenText(block["text"])] if block["text"] else []
        case "image" | "audio":  # measured: SVG and sound are saved, the path is given as text
            return [SeenText(f"[{block['mimeType']} content saved to {FILE}]", "file")]
        case "resource_link":
            return [SeenText(plain_link_line(block))]
        case _:
            where = f"[Resource from lab at {block['resource']['uri']}]"
            if blob := blob_of(block):  # measured with a PDF: a line of text (saved to disk, says the maintainer)
                return [SeenText(f"{where} {blob[1]}")]
            return [SeenText(f"{where} {block['resource']['text']}")]


def _image(traits: Traits, data: str) -> list[SeenPart]:
    picture = look(data)
    if picture is None:  # measured with bytes that are not an image
        return [SeenText("[Image could not be processed and was removed]", "placeholder")]
    width, height = picture.pixels
    factor = max(width, height) / MAX_EDGE
    note, pixels = None, picture.pixels
    # The type sent is that of the bytes: a PNG labelled JPEG was fixed (measured).
    parts: list[SeenPart] = []
    if factor > 1:  # measured: 4000 x 3000 became 2000 x 1500
        pixels = (round(width / factor), round(height / factor))
        note = f"the host scales it to {pixels[0]} x {pixels[1]}"
        parts.append(SeenText(f"[Image scaled. Multiply coordinates by {factor:.2f}]", "frame"))
    elif len(data) >= MAX_BASE64:
        note = "the host sends it as a smaller JPEG"
    image = SeenImage(data, picture.media_type, pixels, note=note)
    if traits.names_sources:  # measured: 2.1.329 does, 2.1.197 does not
        parts.append(SeenText(f"[Image: source: {FILE}]", "frame"))
    return [image, *parts]


def _spilled(parts: list[SeenPart], tool: Mapping[str, Any] | None) -> list[SeenPart]:
    """Save long text to a file, leaving a preview, unless an image is beside it or the tool's `_meta` allows it.

    All of this was measured.
    """
    meta: Any = (tool or {}).get("_meta")
    asked: Any = meta.get("anthropic/maxResultSizeChars") if is_object(meta) else 0
    allowed = max(INLINE_CHARS, asked) if isinstance(asked, int) else INLINE_CHARS
    text = "\n".join(part.text for part in parts if isinstance(part, SeenText))
    if len(text) <= allowed or any(isinstance(part, SeenImage) for part in parts):
        return parts
    note = (
        f"<persisted-output>\nOutput too large ({len(text) / 1024:.1f}KB). Full output saved to: {FILE}.txt\n\n"
        f"Preview (first 2KB):\n{text[:PREVIEW_CHARS]}\n...\n</persisted-output>"
    )
    return [SeenText(note)]


# Measured: server/discover at 2026-07-28; roots, elicitation by form and url. User-Agent: user reports.
CLAUDE_CODE = SimulatedHost(
    name="claude-code",
    title="Claude Code",
    client_info={"name": "claude-code", "version": "2.1.329", "title": "Claude Code"},
    revision="2026-07-28",
    capabilities={"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}},
    user_agent="claude-code/2.1.329 (cli)",
    see=partial(see, Traits()),
    shows=RASTER,
)
# Measured: initialize at 2025-11-25.
CLAUDE_CODE_2_1_197 = replace(
    CLAUDE_CODE,
    name="claude-code-2.1.197",
    title="Claude Code 2.1.197",
    client_info={"name": "claude-code", "version": "2.1.197"},
    revision="2025-11-25",
    capabilities={"roots": {}, "elicitation": {}},
    user_agent="claude-code/2.1.197 (cli)",
    see=partial(see, Traits(names_sources=False)),
)

"""Gemini CLI 0.61.0 with gemini-2.5 and gemini-3, measured (2026-11-20)."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.results import (
    PDF,
    blob_of,
    blocks,
    dump,
    image_of,
    is_error,
    lacks_structured,
    malformed,
    plain_link_line,
)
from gateway.hosts.simulators.seen import (
    Seen,
    SeenDocument,
    SeenPart,
    SeenText,
    as_labelled,
    failed_result,
    texts_first,
)

TEXT_CHARS = 40_000
HEAD_CHARS = 8_000
TAIL_CHARS = 32_000
"""Measured: of 60,000 characters and more, the first 8,000 and the last 32,000 arrive; 20,000 stay whole."""


def see(result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Gemini CLI gets."""
    if problem := malformed(result):
        return failed_result(f"MCP tool reported an invalid result: {problem}")
    if lacks_structured(result, tool):  # measured: such a call fails
        return failed_result("Tool has an output schema but did not return structured content")
    if is_error(result):  # measured: everything, base64 too, becomes one string in `response.error`
        return Seen(
            (SeenText(f"MCP tool 'give' reported tool error with response: {dump(result)}", "error"),), flagged=True
        )
    # Structured content never arrives (measured): alone it gives an empty response.
    parts = [part for block in blocks(result) for part in _parts(block)]
    # Measured: the texts come first, then the media as sibling parts of the response.
    return Seen(texts_first(_cut(parts)))


def _parts(block: Mapping[str, Any]) -> list[SeenPart]:
    if image := image_of(block):
        # Measured: sent as labelled, unchanged and unchecked; so are SVG and bytes that are not an image.
        shown = as_labelled(*image, "beside it")
        return [shown] if block["type"] == "image" else [_wrapped(f"Embedded resource: {image[1]}"), shown]
    match block["type"]:
        case "text":
            return [_wrapped(block["text"])] if block["text"] else []
        case "audio":  # measured: a placeholder
            return [
                SeenText(
                    f"[Tool 'give' provided the following audio data with mime-type: {block['mimeType']}]",
                    "placeholder",
                )
            ]
        case "resource_link":
            return [_wrapped(plain_link_line(block))]
        case _:
            blob = blob_of(block)
            if blob is None:
                return [_wrapped(block["resource"]["text"])]
            if blob[1] == PDF:  # measured: a native document beside the result
                return [SeenDocument(blob[0], blob[1], "beside it")]
            return [SeenText(f"[{blob[1]}]", "placeholder")]  # other types: not measured, so taken as lost


def _wrapped(text: str) -> SeenText:
    return SeenText(f"<untrusted_context>\n{text}\n</untrusted_context>")


def _cut(parts: list[SeenPart]) -> list[SeenPart]:
    """Measured: long text alone is cut and saved to a file; next to an image 200,000 characters arrived whole."""
    text = "\n".join(part.text for part in parts if isinstance(part, SeenText))
    if len(text) <= TEXT_CHARS or any(not isinstance(part, SeenText) for part in parts):
        return parts
    head, tail = text[:HEAD_CHARS], text[-TAIL_CHARS:]
    return [
        SeenText(
            f"Output too large. Showing the first {HEAD_CHARS:,} and last {TAIL_CHARS:,} characters. For full output "
            f"see: /tmp/gemini/tool-outputs/give.txt\n{head}\n\n"
            f"... [{len(text) - TEXT_CHARS:,} characters omitted] ...\n\n{tail}"
        )
    ]


# Measured: initialize at 2025-06-18; roots.
GEMINI_CLI = SimulatedHost(
    name="gemini-cli",
    title="Gemini CLI",
    client_info={"name": "gemini-cli-mcp-client", "version": "0.61.0"},
    revision="2025-06-18",
    capabilities={"roots": {"listChanged": True}},
    see=see,
    shows=RASTER | {PDF},
)

"""Qwen Code 0.24.4 on Anthropic's API and on OpenAI's with two models, measured (2026-11-20 and 2026-11-23)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.core.model.apps_extension import EXTENSION
from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.results import (
    PDF,
    VECTOR,
    blob_of,
    blocks,
    dump,
    image_of,
    is_error,
    malformed,
    plain_link_line,
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
    as_labelled,
    failed_result,
    texts_first,
)

INLINE_CHARS = 20_000
"""Measured between 20,000 (inline) and 60,000 (a file); nothing more precise is known, so the smaller counts."""
PREVIEW_CHARS = 2_048
FILE = "/home/user/.qwen/tmp/3f0c8a526a1e4f0e9c551d2f6d0a7b31/tool-outputs/mcp__lab__give-1795219200000-1f3b.output"


@dataclass(frozen=True)
class Traits:
    """Differences between APIs and models.

    `where`: the place of images (None: a sentence replaces them); `vectors`: whether these are sent as images;
    `documents`: whether PDFs arrive; `flags`: whether the model learns that the call failed.
    """

    where: Where | None
    vectors: bool = True
    documents: bool = False
    flags: bool = False


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of Qwen Code gets.

    The effect of missing structured content was not measured, so `tool` is not used.
    """
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    parts = [part for block in blocks(result) for part in _parts(traits, block)]
    if is_error(result):  # measured: the texts in a sentence about the call, then the images
        images = [part for part in parts if isinstance(part, SeenImage)]
        said = f"MCP tool 'give' reported tool error for function call: {{}} with response: {texts_of(result)}"
        return Seen(tuple(_spilled([SeenText(said, "error"), *images])), flagged=traits.flags)
    if structured(result) is not None:  # measured: stands before everything else, which is kept
        parts.insert(0, SeenText(dump(structured(result)), "structured"))
    if not parts:  # measured: a placeholder
        return Seen((SeenText("(the tool returned no output)", "placeholder"),))
    return Seen(tuple(_spilled(list(texts_first(parts)))))  # measured: the texts come first


def _parts(traits: Traits, block: Mapping[str, Any]) -> list[SeenPart]:
    if image := image_of(block):
        # Measured: sent as labelled, unchanged and unchecked; models without eyes are known by their name.
        if traits.where is None or (image[1] == VECTOR and not traits.vectors):
            return [_lost(image[1])]
        return [as_labelled(*image, traits.where)]
    match block["type"]:
        case "text":
            return [SeenText(block["text"])] if block["text"] else []
        case "audio":  # measured: a placeholder
            return [_lost(block["mimeType"])]
        case "resource_link":
            return [SeenText(plain_link_line(block))]
        case _:
            blob = blob_of(block)
            if blob is None:
                return [SeenText(block["resource"]["text"])]
            if blob[1] == PDF and traits.documents:  # measured
                return [SeenDocument(*blob)]
            return [_lost(blob[1])]  # measured for PDF; other types were not, so they are taken as lost


def _lost(media_type: str) -> SeenText:
    return SeenText(f"[Unsupported content ({media_type}) was left out for this model]", "placeholder")


def _spilled(parts: list[SeenPart]) -> list[SeenPart]:
    """Measured: long text goes to a file and leaves a preview, also next to an image."""
    text = "\n".join(part.text for part in parts if isinstance(part, SeenText))
    if len(text) <= INLINE_CHARS:
        return parts
    note = (
        f"Tool output was too large and has been truncated.\nThe full output ({len(text)} chars) has been saved to: "
        f"{FILE}\nTo read the complete output, use the read_file tool with the absolute file path above.\n"
        f"The output below is its beginning (2 KB):\n{text[:PREVIEW_CHARS]}\n... [truncated] ..."
    )
    return [SeenText(note), *(part for part in parts if not isinstance(part, SeenText))]


def _host(name: str, title: str, traits: Traits, profile: str | None = None) -> SimulatedHost:
    # Measured: initialize at 2025-11-25; it puts the server's name into its own.
    shown = RASTER if traits.where else frozenset[str]()
    return SimulatedHost(
        name=name,
        title=title,
        client_info={"name": "qwen-cli-mcp-client-lab", "version": "0.0.1"},
        revision="2025-11-25",
        capabilities={"roots": {}, "extensions": {EXTENSION: {"mimeTypes": ["text/html;profile=mcp-app"]}}},
        see=partial(see, traits),
        shows=shown | {PDF} if traits.documents else shown,
        profile=profile,
    )


QWEN_CODE = _host("qwen-code", "Qwen Code, vision model", Traits("beside it"))
"""With qwen3-vl-plus."""
QWEN_CODE_ANTHROPIC = _host(
    "qwen-code-anthropic",
    "Qwen Code, Anthropic's API",
    Traits("in the result", vectors=False, documents=True, flags=True),
    "qwen-code-anthropic",
)
QWEN_CODE_TEXT = _host("qwen-code-text", "Qwen Code, text model", Traits(None), "qwen-code-text")
"""With qwen3-coder-plus."""

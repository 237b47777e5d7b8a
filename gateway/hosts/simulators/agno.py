"""Agno 3.1.10 on Chat Completions and on Responses, measured (2026-11-22)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import RASTER, nameless_host
from gateway.hosts.simulators.python_objects import contents_text
from gateway.hosts.simulators.results import blocks, dump, is_error, lacks_structured, malformed, structured
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenPart, SeenText, as_labelled, failed_result, texts_first

SOUND = frozenset({"audio/wav"})


def see(sound: bool, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind Agno gets. `sound`: whether sound arrives (on Chat Completions it does).

    No limit on text was found (200,000 characters arrived).
    """
    if problem := malformed(result):
        return failed_result(f"Error: {problem}", flagged=False)
    if lacks_structured(result, tool):  # measured
        return failed_result(
            "Error: Tool give has an output schema but did not return structured content", flagged=False
        )
    if is_error(result):  # measured: base64 and all
        return Seen((SeenText(f"Error from MCP tool 'give': {contents_text(blocks(result))}", "json"),), flagged=True)
    if _is_bare(blocks(result)):  # measured: read where nothing else is
        return Seen(() if structured(result) is None else (SeenText(dump(structured(result)), "structured"),))
    return Seen(texts_first([part for block in blocks(result) for part in _parts(sound, block)]))


def _is_bare(content: Sequence[Mapping[str, Any]]) -> bool:
    return all(block["type"] == "text" and not block["text"].strip() for block in content)


def _parts(sound: bool, block: Mapping[str, Any]) -> list[SeenPart]:
    """Convert one block; media follows in a message of its own (measured)."""
    match block["type"]:
        case "text":
            return [SeenText(block["text"])]
        case "image":  # measured: as labelled, unchanged and unchecked
            words = SeenText("Image has been generated and added to the response.", "frame")
            return [words, as_labelled(block["data"], block["mimeType"], "beside it")]
        case "audio":
            words = "Audio has been generated and added to the response."
            if not sound:  # measured: on Responses the words are all there is
                return [SeenText(words, "placeholder")]
            return [SeenText(words, "frame"), SeenAudio(block["data"], block["mimeType"], "beside it")]
        case "resource":  # measured: embedded text, images and other bytes alike
            return [SeenText(f"[Embedded resource: {dump(block['resource'])}]", "json")]
        case _:
            return [SeenText(f"[Unsupported content type: {block['type']}]", "placeholder")]


# Measured: the SDK's default clientInfo; initialize at 2025-11-25.
AGNO = nameless_host("agno", "Agno", partial(see, True), profile="agno", shows=RASTER)
AGNO_AUDIO = nameless_host(
    "agno-audio", "Agno with a model that hears", partial(see, True), profile="agno-audio", shows=RASTER | SOUND
)
AGNO_RESPONSES = nameless_host("agno-responses", "Agno, Responses", partial(see, False), profile="agno", shows=RASTER)

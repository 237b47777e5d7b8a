"""smolagents 1.26.0 with mcpadapt 0.1.19 (and mcp 1.30, the last with which it starts), measured (2026-11-20)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import nameless_host
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import VECTOR, blocks, dump, malformed, structured
from gateway.hosts.simulators.seen import Seen, SeenText, failed_result

OBSERVATION = SeenText("Observation:", "frame")


@dataclass(frozen=True)
class Traits:
    """The setting `structured_output` of its MCP client."""

    structured: bool = False


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind smolagents gets: only the first block (measured).

    The effect of missing structured content was not measured, so `tool` is not used; nor whether the model learns of
    the error flag, so nothing is flagged.
    """
    if problem := malformed(result):
        return _stopped(problem)
    if not blocks(result):  # measured, also with structured content
        return _stopped("the tool returned an empty content")
    if traits.structured and structured(result) is not None:  # measured: replaces everything
        return Seen((OBSERVATION, SeenText(dump(structured(result)), "structured")))
    block = blocks(result)[0]
    match block["type"]:
        case "text":
            return Seen((OBSERVATION, SeenText(block["text"])))
        case "image":
            if look(block["data"]) is None or block["mimeType"] == VECTOR:  # measured: PIL cannot open it
                return _stopped("cannot identify image file")
            # Measured: the image is an object of the program, which the model does not see.
            return Seen((OBSERVATION, SeenText("Stored 'image.png' in memory.", "placeholder")))
        case "audio":
            return _stopped("torchaudio is required to decode audio")
        case "resource_link":
            return _stopped("unsupported content type ResourceLink")
        case _:
            return _stopped("unsupported content type EmbeddedResource")


def _stopped(why: str) -> Seen:
    return failed_result(f"Error executing tool 'give': {why}")


# Measured: the SDK's default clientInfo; initialize at 2025-11-25.
SMOLAGENTS = nameless_host("smolagents", "smolagents", partial(see, Traits()), profile="smolagents")
SMOLAGENTS_STRUCTURED = nameless_host(
    "smolagents-struct", "smolagents, structured_output", partial(see, Traits(structured=True)), profile="smolagents"
)

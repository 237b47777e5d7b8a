"""Pydantic AI 2.68.0 (fastmcp-slim 4.2.0) with four kinds of model API, measured (2026-11-20)."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.results import (
    PDF,
    VECTOR,
    blob_of,
    blocks,
    dump,
    image_of,
    is_error,
    lacks_structured,
    malformed,
    structured,
    texts_of,
)
from gateway.hosts.simulators.seen import (
    Seen,
    SeenAudio,
    SeenDocument,
    SeenPart,
    SeenText,
    Where,
    as_labelled,
    failed_result,
    texts_first,
)

SOUND = frozenset({"audio/wav"})


@dataclass(frozen=True)
class Traits:
    """Differences between model APIs: the place of media, and which media arrives.

    `where`: the place of media; `beside`: image types that are placed beside the result all the same; `vector`: the
    treatment of vector images; `sound`: whether sound arrives.
    """

    where: Where
    beside: frozenset[str] = frozenset()
    vector: Literal["image", "text"] = "image"
    sound: bool = False


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind Pydantic AI gets. No limit on text was found (200,000 characters arrived)."""
    if problem := malformed(result):
        return failed_result(f"the run ended: {problem}", flagged=False)
    if lacks_structured(result, tool):  # measured: the run ends
        return failed_result(
            "the run ended: Tool has an output schema but did not return structured content", flagged=False
        )
    if is_error(result):  # measured: text only, the image is dropped; it becomes a request to try again
        return Seen((SeenText(texts_of(result)), SeenText("Fix the errors and try again.", "frame")), flagged=True)
    only_text = all(block["type"] == "text" for block in blocks(result))
    if structured(result) is not None and only_text:  # measured: wins over text, gives way where there is an image
        return Seen((SeenText(dump(structured(result)), "structured"),))
    parts = [part for block in blocks(result) for part in _parts(traits, block)]
    return Seen(texts_first(parts) if traits.where == "beside it" else tuple(parts))


def _parts(traits: Traits, block: Mapping[str, Any]) -> list[SeenPart]:
    if image := image_of(block):
        data, media_type = image
        if media_type == VECTOR and traits.vector == "text":  # measured
            return [SeenText(base64.b64decode(data).decode("utf-8", "replace"))]
        # Measured: sent as labelled, unchanged and unchecked.
        return [as_labelled(data, media_type, "beside it" if media_type in traits.beside else traits.where)]
    match block["type"]:
        case "text":
            return [SeenText(block["text"])]
        case "audio":  # measured: Google's API alone is sent sound, others a placeholder
            if traits.sound:
                return [SeenAudio(block["data"], block["mimeType"], "beside it")]
            return [SeenText(f"[{block['mimeType']} is not supported by this model]", "placeholder")]
        case "resource_link":  # measured: the address as text
            return [SeenText(block["uri"])]
        case _:
            blob = blob_of(block)
            if blob is None:
                return [SeenText(block["resource"]["text"])]
            if blob[1] == PDF:  # measured
                return [SeenDocument(*blob, traits.where)]
            return [SeenText(f"[{blob[1]}]", "placeholder")]  # other types: not measured, so taken as lost


def _host(name: str, title: str, traits: Traits, profile: str = "pydantic-ai") -> SimulatedHost:
    # Measured: server/discover at 2026-07-28 under the name of every FastMCP client.
    return SimulatedHost(
        name=name,
        title=title,
        client_info={"name": "fastmcp", "version": "4.2.0"},
        revision="2026-07-28",
        see=partial(see, traits),
        shows=RASTER | {PDF} | (SOUND if traits.sound else frozenset[str]()),
        profile=profile,
    )


_NOT_IN_RESULTS = frozenset({"image/gif", VECTOR})
PYDANTIC_AI = _host("pydantic-ai", "Pydantic AI", Traits("in the result"))
"""With Anthropic's API and OpenAI's Responses API: the same cells."""
PYDANTIC_AI_CHAT = _host(
    "pydantic-ai-chat", "Pydantic AI, Chat Completions", Traits("beside it", vector="text"), "pydantic-ai"
)
PYDANTIC_AI_GOOGLE = _host(
    "pydantic-ai-google", "Pydantic AI, Gemini 2.5", Traits("beside it", sound=True), "pydantic-ai-google"
)
PYDANTIC_AI_GOOGLE_3 = _host(
    "pydantic-ai-google-3",
    "Pydantic AI, Gemini 3",
    Traits("in the result", beside=_NOT_IN_RESULTS, sound=True),
    "pydantic-ai-google",
)

"""AI SDK 7.0.173 with @ai-sdk/mcp 2.0.99 and four kinds of model API, measured (2026-11-20)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import blocks, dump, malformed
from gateway.hosts.simulators.seen import Seen, SeenImage, SeenPart, SeenText, Where, failed_result, texts_first


@dataclass(frozen=True)
class Traits:
    """Differences between model APIs.

    `where`: the place of images (None: the content is one string of JSON). Also whether the texts come first, the
    `frame` of words that the API's own format adds, and the frame for an empty result (`nothing`).
    """

    where: Where | None
    text_first: bool = False
    frame: str | None = None
    nothing: str | None = None


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind the AI SDK gets. No limit was found: 200,000 characters of text arrived.

    Missing structured content is tolerated (measured), so `tool` is not used; structured content never arrives
    (measured). An image beside an error stays, and the flag is lost (measured), so nothing is flagged.
    """
    if problem := malformed(result):
        return failed_result(f"Invalid tool result: {problem}")
    if not blocks(result):  # measured: nothing at all, or the words of an empty result
        return Seen((SeenText(traits.nothing, "placeholder"),) if traits.nothing else ())
    if traits.where is None:  # measured: an array of parts, files with their base64 in it
        return Seen((SeenText(dump([_as_json(block) for block in blocks(result)]), "json"),))
    parts = [_part(traits.where, block) for block in blocks(result)]
    has_media = any(block["type"] != "text" for block in blocks(result))
    frame = (SeenText(traits.frame, "frame"),) if traits.frame and has_media else ()
    return Seen((*frame, *(texts_first(parts) if traits.text_first else parts)))


def _part(where: Where, block: Mapping[str, Any]) -> SeenPart:
    match block["type"]:
        case "text":
            return SeenText(block["text"])
        case (
            "image"
        ):  # measured: the type sent is that of the bytes; SVG and bytes that are not an image go as labelled
            picture = look(block["data"])
            media_type = picture.media_type if picture else block["mimeType"]
            return SeenImage(block["data"], media_type, picture and picture.pixels, where)
        case _:  # measured: sound, embedded resources (images too) and links as JSON, base64 and all
            return SeenText(dump(block), "json")


def _as_json(block: Mapping[str, Any]) -> Mapping[str, Any]:
    match block["type"]:
        case "text":
            return {"type": "text", "text": block["text"]}
        case "image":
            return {"type": "file", "mediaType": block["mimeType"], "data": {"type": "data", "data": block["data"]}}
        case _:
            return {"type": "text", "text": dump(block)}


def _host(name: str, title: str, traits: Traits, profile: str | None = None) -> SimulatedHost:
    # Measured: server/discover at 2026-07-28; no capabilities. It says nothing of the model or its API.
    return SimulatedHost(
        name=name,
        title=title,
        client_info={"name": "ai-sdk-mcp-client", "version": "1.0.0"},
        revision="2026-07-28",
        see=partial(see, traits),
        shows=RASTER if traits.where else frozenset(),
        profile=profile,
    )


AI_SDK = _host("ai-sdk", "AI SDK", Traits("in the result"))
"""With Anthropic's API and OpenAI's Responses API: the same cells."""
AI_SDK_CHAT = _host("ai-sdk-chat", "AI SDK, Chat Completions", Traits(None), "ai-sdk-chat")
"""With OpenAI's Chat Completions and with OpenAI-compatible APIs: the same cells."""
AI_SDK_GOOGLE = _host(
    "ai-sdk-google",
    "AI SDK, Gemini 2.5",
    Traits("beside it", frame="Tool executed successfully and returned this image as a response"),
)
_DONE = "Tool executed successfully."
AI_SDK_GOOGLE_3 = _host(
    "ai-sdk-google-3", "AI SDK, Gemini 3", Traits("in the result", text_first=True, frame=_DONE, nothing=_DONE)
)

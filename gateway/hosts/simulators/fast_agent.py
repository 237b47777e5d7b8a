"""fast-agent 0.10.48 on three model APIs, measured (2026-11-27) with models that take PNG, JPEG, WebP and PDF."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import PDF, blob_of, blocks, dump, image_of, is_error, malformed, structured
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

Block = Mapping[str, Any]
TYPES = frozenset({"image/png", "image/jpeg", "image/webp", PDF})
TEXT_BYTES = 16_000
"""Measured: of longer texts the beginning and the end arrive, half of it each."""
REMOVED = "[{kind} content was removed - gpt-5.5 does not support this content type]"


@dataclass(frozen=True)
class Traits:
    """Differences between model APIs.

    `nothing`: what stands for a result without text. `sound`: what stands for sound; left out if it is empty.
    `shows_links`: whether a link is text; it is the address of a file else. `flags`: whether the model is told of an
    error by a flag.
    """

    where: Where
    nothing: str
    sound: str
    shows_links: bool = True
    flags: bool = False
    documents: bool = True


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model of fast-agent gets.

    The effect of missing structured content was not measured, so `tool` is not used.
    """
    if problem := malformed(result):
        return failed_result(f"Error executing tool: {problem}", flagged=traits.flags)
    parts = [part for block in _taken(traits, blocks(result)) for part in _parts(traits, block)]
    if (data := structured(result)) is not None:  # measured: in place of every text
        parts = [SeenText(dump(data), "structured"), *(part for part in parts if not isinstance(part, SeenText))]
    parts = _cut(parts)
    if not parts:
        return Seen((SeenText(traits.nothing, "placeholder"),))
    ordered = texts_first(parts) if traits.where == "beside it" else tuple(parts)
    return Seen(tuple(ordered), flagged=traits.flags and is_error(result))


def _taken(traits: Traits, given: Sequence[Block]) -> Sequence[Block]:
    """What is left after all that the model does not take: without a word, unless nothing is left."""
    kept = [block for block in given if _is_taken(traits, block)]
    if kept or not given:
        return kept
    return [{"type": "text", "text": REMOVED.format(kind="audio" if given[0]["type"] == "audio" else "vision")}]


def _is_taken(traits: Traits, block: Block) -> bool:
    if block["type"] == "audio":
        return bool(traits.sound)
    found = image_of(block) or blob_of(block)
    return found is None or found[1] in TYPES


def _cut(parts: list[SeenPart]) -> list[SeenPart]:
    written = "\n".join(part.text for part in parts if isinstance(part, SeenText)).encode()
    if len(written) <= TEXT_BYTES:
        return parts
    head, tail = (part.decode(errors="replace") for part in (written[: TEXT_BYTES // 2], written[-TEXT_BYTES // 2 :]))
    notice = f"[Tool result truncated: showing first 8000 bytes and last 8000 bytes of {len(written)} bytes]"
    return [SeenText(f"{head}\n{notice}\n{tail}"), *(part for part in parts if not isinstance(part, SeenText))]


def _parts(traits: Traits, block: Block) -> list[SeenPart]:
    if image := image_of(block):  # measured: sent as labelled
        picture = look(image[0])
        return [SeenImage(*image, picture.pixels if picture else None, traits.where)]
    if blob := blob_of(block):
        return [SeenDocument(*blob, traits.where)] if traits.documents else []
    match block["type"]:
        case "text":
            return [SeenText(block["text"])] if block["text"] else []
        case "audio":
            return [SeenText(traits.sound.format(type=block["mimeType"]), "placeholder")]
        case "resource_link":
            line = f"[ResourceLink: {block['name']} ({block.get('mimeType')})]\nURI: {block['uri']}"
            return [SeenText(line)] if traits.shows_links else []
        case _:
            about = block["resource"]
            opening = f'<fastagent:file title="{about["uri"]}" mimetype="{about.get("mimeType")}">'
            return [SeenText(f"{opening}\n{about['text']}\n</fastagent:file>")]


def _host(name: str, title: str, traits: Traits, profile: str | None = None) -> SimulatedHost:
    # Measured: it asks server/discover first, and is of 2026-07-28. It says nothing of the model or its API.
    return SimulatedHost(
        name=name,
        title=title,
        client_info={"name": "fast-agent-mcp", "version": "0.10.48"},
        revision="2026-07-28",
        capabilities={"sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}},
        see=partial(see, traits),
        shows=TYPES if traits.documents else TYPES - {PDF},
        profile=profile,
    )


FAST_AGENT = _host(
    "fast-agent",
    "fast-agent",
    # A PDF is uploaded first; without a place for files, the run ends.
    Traits("in the result", "", "[Unsupported content: AudioContent]", shows_links=False, documents=False),
)
FAST_AGENT_CHAT = _host(
    "fast-agent-chat",
    "fast-agent, Chat Completions",
    Traits("beside it", "[Tool completed successfully]", "[Unsupported audio content: {type}]"),
    "fast-agent-documents",
)
FAST_AGENT_ANTHROPIC = _host(
    "fast-agent-anthropic",
    "fast-agent, Anthropic's API",
    Traits("in the result", "[No content in tool result]", "", flags=True),
    "fast-agent-documents",
)

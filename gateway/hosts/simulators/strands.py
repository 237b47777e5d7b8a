"""Strands Agents 1.62.0 on Anthropic's API and on Chat Completions, measured (2026-11-20)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gateway.hosts.simulators.host import RASTER, SimulatedHost, nameless_host
from gateway.hosts.simulators.results import blob_of, blocks, image_of, malformed
from gateway.hosts.simulators.seen import Seen, SeenPart, SeenText, Where, as_labelled, failed_result, texts_first


@dataclass(frozen=True)
class Traits:
    """Differences between model APIs: `where` images are placed, and the types that are `renamed` on the way."""

    where: Where
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])


def see(traits: Traits, result: Mapping[str, Any], tool: Mapping[str, Any] | None = None) -> Seen:
    """Return what the model behind Strands gets. No limit on text was found (200,000 characters arrived).

    The effect of missing structured content was not measured, so `tool` is not used. Structured content never arrives
    (measured).
    """
    if problem := malformed(result):
        return failed_result(f"Tool execution failed: {problem}")
    for block in blocks(result):
        if (image := image_of(block)) and image[1] not in RASTER:  # measured with SVG: the text beside it is lost too
            return failed_result(f"Tool execution failed: '{image[1]}'")
    parts = [part for block in blocks(result) for part in _parts(traits, block)]
    # Measured: an image beside an error stays. Whether the model learns of the flag was not, so nothing is flagged.
    return Seen(texts_first(parts) if traits.where == "beside it" else tuple(parts))


def _parts(traits: Traits, block: Mapping[str, Any]) -> list[SeenPart]:
    if image := image_of(block):  # measured: embedded images too, all as labelled
        data, media_type = image
        return [as_labelled(data, traits.renamed.get(media_type, media_type), traits.where)]
    if block["type"] == "text":
        return [SeenText(block["text"])]
    if block["type"] == "resource" and blob_of(block) is None:
        return [SeenText(block["resource"]["text"])]
    return []  # measured for sound, PDF and links: they vanish without a word; other bytes are taken as lost


def _host(name: str, title: str, traits: Traits) -> SimulatedHost:
    # Measured: the SDK's default clientInfo; server/discover at 2026-07-28.
    return nameless_host(name, title, partial(see, traits), profile="strands", shows=RASTER, revision="2026-07-28")


STRANDS = _host("strands", "Strands Agents", Traits("in the result"))
"""With models of Anthropic."""
STRANDS_CHAT = _host(
    "strands-chat",
    "Strands Agents, Chat Completions",
    Traits("beside it", {"image/webp": "application/octet-stream"}),
)

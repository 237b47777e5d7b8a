"""Kimi Code 2.1.0 on Chat Completions and on Anthropic's API, measured (2026-11-23)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.hosts.simulators.block_rules import BlockRules, as_words
from gateway.hosts.simulators.host import RASTER, SimulatedHost
from gateway.hosts.simulators.pictures import look
from gateway.hosts.simulators.results import image_of
from gateway.hosts.simulators.seen import SeenImage, SeenPart, SeenText, Where

_KEPT = "[MCP content dropped: {uri} ({type}), saved with the session]"


def _image(where: Where, block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    """Measured: with the type of its bytes; what is none of the four types is named."""
    data, media_type = image_of(block) or ("", "")
    picture = look(data)
    if picture is None or picture.media_type not in RASTER:
        return (SeenText(f"The image of type {media_type} is not supported and was saved.", "placeholder"),)
    return (SeenImage(data, picture.media_type, picture.pixels, where),)


def _beside(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    return _image("beside it", block)


def _inside(block: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    return _image("in the result", block)


_ON_CHAT = BlockRules(
    image=_beside,
    embedded_image=_beside,
    audio=as_words("The sound is not supported and was saved.", "placeholder"),
    document=as_words(_KEPT),
    blob=as_words(_KEPT),
    link=as_words("[MCP content dropped: resource_link {uri}]"),
    structured="unless-twin",
    is_in_order=False,
)
_ON_ANTHROPIC = replace(_ON_CHAT, image=_inside, embedded_image=_inside, is_in_order=True)

# The revision was not recorded: it is that of the TypeScript SDK.
KIMI_CODE = SimulatedHost(
    name="kimi-code",
    title="Kimi Code",
    client_info={"name": "kimi-code", "version": "2.1.0"},
    revision="2025-11-25",
    see=_ON_CHAT.see,
    shows=RASTER,
)
KIMI_CODE_ANTHROPIC = replace(
    KIMI_CODE, name="kimi-code-anthropic", title="Kimi Code, Anthropic's API", see=_ON_ANTHROPIC.see
)

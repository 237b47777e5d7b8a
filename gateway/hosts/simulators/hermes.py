"""Hermes Agent 0.19.0 on Chat Completions, measured (2026-11-23)."""

from collections.abc import Mapping
from typing import Any

from gateway.hosts.simulators.block_rules import BlockRules, as_text, as_words
from gateway.hosts.simulators.host import nameless_host
from gateway.hosts.simulators.results import texts_of
from gateway.hosts.simulators.seen import SeenPart, SeenText

_CACHE = "/home/user/.hermes/cache"


def _error(result: Mapping[str, Any]) -> tuple[SeenPart, ...]:
    return (SeenText(f'{{"error": "{texts_of(result)}"}}', "error"),)


# Measured: one string of JSON, {"result": <these lines joined>, "structuredContent": ...}; here it is written out so
# that it can be read.
_RULES = BlockRules(
    image=as_words(f"MEDIA:{_CACHE}/images/image", "file"),
    embedded_image=as_words(f"MEDIA:{_CACHE}/images/image", "file"),
    audio=as_words(f"MEDIA:{_CACHE}/audio/sound", "file"),
    document=as_words(f"[embedded resource {{uri}} ({{type}}) saved to {_CACHE}/resource]"),
    blob=as_words(f"[embedded resource {{uri}} ({{type}}) saved to {_CACHE}/resource]"),
    link=as_words("[resource {name}: {uri}]"),
    embedded_text=as_text,
    structured="after",
    structured_words='"structuredContent": {}',
    error=_error,
)

# Source: the SDK's default clientInfo, on purpose; the revision was not recorded, it is the SDK's.
HERMES = nameless_host("hermes", "Hermes Agent", _RULES.see, profile="hermes")

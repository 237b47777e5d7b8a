"""The SHA-256 of everything in a result, which proves what was returned, and what a model was shown.

Media is hashed as the bytes that its base64 stands for, text as UTF-8, anything else as canonical JSON.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import pybase64

from gateway.core.model.base64_text import decoded, mend
from gateway.core.model.canonical_json import canonical_json
from gateway.core.model.json_values import as_list, as_object, as_text, is_object

_STRUCTURED = "structuredContent"


class Digests:
    """Describes the parts of results. Base64 that several of them share is decoded and hashed once."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, Any]] = {}

    def of_result(self, result: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return `type`, `bytes` and `sha256` for each part, in order: blocks, contents, and structured content."""
        parts = [self._part(block) for block in _blocks(result)]
        if _STRUCTURED in result:
            parts.append({"type": "structured", **sha256_of_json(result[_STRUCTURED])})
        return parts

    def _part(self, block: Any) -> dict[str, Any]:
        if not is_object(block):
            return {"type": "unknown", **sha256_of_json(block)}
        inner = as_object(block.get("resource")) or block
        kind = as_text(block.get("type")) or "resource"
        media_type = as_text(inner.get("mimeType"))
        about = {"type": kind, **({"media_type": media_type[:100]} if media_type else {})}
        encoded, text = inner.get("data", inner.get("blob")), inner.get("text")
        if kind in ("image", "audio", "resource") and isinstance(encoded, str):
            return {**about, **self._media(encoded)}
        if kind in ("text", "resource") and isinstance(text, str):
            return {**about, **_hashed(text.encode("utf-8", "surrogatepass"))}
        return {**about, **sha256_of_json(block)}

    def _media(self, encoded: str) -> dict[str, Any]:
        # Keyed by identity: the results that are described hold the text meanwhile.
        found = self._known.get(id(encoded))
        if found is None:
            content = _decoded(encoded)
            raw = encoded.encode("utf-8", "surrogatepass") if content is None else content
            found = self._known[id(encoded)] = {**_hashed(raw), **({"broken": True} if content is None else {})}
        return found


def _decoded(encoded: str) -> bytes | None:
    """Return what base64 stands for, as far as it can be mended; None if it is none."""
    try:
        return pybase64.b64decode(encoded, validate=True)
    except ValueError:
        standard = mend(encoded).data
    return None if standard is None else decoded(standard)


def sha256_of_json(value: Any) -> dict[str, Any]:
    """Return `bytes` and `sha256` of a value as canonical JSON (`canonical_json`)."""
    return _hashed(canonical_json(value))


def _hashed(content: bytes) -> dict[str, Any]:
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _blocks(result: Mapping[str, Any]) -> Iterator[Any]:
    yield from as_list(result.get("content"))
    yield from as_list(result.get("contents"))
    for message in as_list(result.get("messages")):
        content = as_object(message).get("content")
        yield from content if isinstance(content, list) else [content]

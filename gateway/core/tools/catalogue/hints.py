"""Merging what lists say about themselves, their lifetime (`ttlMs`) and `_meta`, across pages and upstreams.

A hint is `{"ttlMs": milliseconds or None, "_meta": {...}}`; None means that the upstream gave no valid one.
Source: https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.wire import WireObject

NO_HINT: Mapping[str, Any] = {"ttlMs": None, "_meta": {}}

_RESERVED = re.compile(r"[A-Za-z0-9-]+\.(?:modelcontextprotocol|mcp)(?:\.[A-Za-z0-9.-]+)?/")
"""Prefixes of `_meta` keys reserved by the protocol (specification, basic, `_meta`): each belongs to one hop."""


def lifetime(value: object) -> int | None:
    """Return a valid `ttlMs`: a whole number of milliseconds, 0 or more."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def of_pages(pages: Sequence[WireObject]) -> dict[str, Any]:
    """Return the hint of a list in pages: the shortest lifetime, and the last value of each key in `_meta`."""
    meta: dict[str, Any] = {}
    for page in pages:
        meta.update(_meta(page))
    return {"ttlMs": _shortest(lifetime(page.get("ttlMs")) for page in pages), "_meta": meta}


def merge_hints(hints: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the hints of several lists, in order; empty if there is nothing to say.

    The result has the shortest lifetime, or none if one of them gave none, and the first value of each key in `_meta`.
    """
    given = list(hints)
    meta: dict[str, Any] = {}
    for hint in given:
        for key, value in _meta(hint).items():
            if not _RESERVED.match(key):
                meta.setdefault(key, value)
    shortest = _shortest(lifetime(hint.get("ttlMs")) for hint in given)
    return {**({"ttlMs": shortest} if shortest else {}), **({"_meta": meta} if meta else {})}


def _shortest(lifetimes: Iterable[int | None]) -> int | None:
    found = list(lifetimes)
    known = [one for one in found if one is not None]
    return min(known) if known and len(known) == len(found) else None


def _meta(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_object(value.get("_meta"))

"""What a list says about itself, how long it may be kept (`ttlMs`) and `_meta`: of its pages, and of several upstreams.

A hint is `{"ttlMs": milliseconds or None, "_meta": {...}}`; None says that the upstream gave no sane one.
Source: https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.wire import WireObject

NO_HINT: Mapping[str, Any] = {"ttlMs": None, "_meta": {}}

_RESERVED = re.compile(r"[A-Za-z0-9-]+\.(?:modelcontextprotocol|mcp)(?:\.[A-Za-z0-9.-]+)?/")
"""Prefixes of `_meta` keys that are the protocol's own (specification, basic, `_meta`): each belongs to one hop."""


def lifetime(value: object) -> int | None:
    """A `ttlMs` that makes sense: a whole number of milliseconds, 0 or more."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def of_pages(pages: Sequence[WireObject]) -> dict[str, Any]:
    """The hint of a list that came in pages: the shortest lifetime, and of each key in `_meta` the last."""
    meta: dict[str, Any] = {}
    for page in pages:
        meta.update(_meta(page))
    return {"ttlMs": _shortest(lifetime(page.get("ttlMs")) for page in pages), "_meta": meta}


def merge_hints(hints: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The fields of a list that is made of several, in order: empty where there is nothing to say.

    The shortest lifetime, none when one of them gave none; of each key in `_meta` the first that has it.
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

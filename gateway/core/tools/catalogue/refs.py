"""Replacing references in a tool's schema by their targets, for hosts that drop the definitions.

Nothing is fetched. Bounded for every schema: a reference that is circular, leads out of the schema or nowhere, or goes
on for too long becomes a schema without constraints, with a description of what was there.
"""

from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.json_size import size_of
from gateway.core.model.json_values import is_object
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.faults import DEEPEST, References, rebuilt

_DEFINITIONS = frozenset({"$defs", "definitions"})
_WORDS = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"})
"""Members beside a `$ref` that describe it and demand nothing."""
_MOST = 5_000
"""Maximum number of schemas in the inlined one: definitions that double one another grow without end."""
_MOST_CHARACTERS = 1_000_000
"""Maximum characters inserted in place of references: a long definition that is named often grows as well."""
_DEEPEST = (2 * DEEPEST, 6, 2)
"""Depths to which references are followed: the first, or less if that makes more than `_MOST` schemas."""


def inlined(schema: WireObject) -> tuple[dict[str, Any], bool] | None:
    """Return the schema without references into itself, and whether it accepts more than before.

    None if the inserted schemas would be too large, however few levels of references are followed.
    """
    for deepest in _DEEPEST:
        inliner = _Inliner(schema, deepest)
        whole = inliner.without_refs(schema, ("#",), 0)
        if inliner.has_room:
            return whole, inliner.is_looser
    return None


def without_broken_refs(schema: WireObject) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Remove references that lead nowhere or elsewhere, and return them: many hosts refuse every tool because of one.

    In a schema with an `$id`, other addresses may be its own, and are left.
    """
    broken: list[str] = []
    references = References(schema)

    def mended(value: Any) -> Any:
        if not is_object(value):
            return value
        known = rebuilt(value, mended)
        reference = known.get("$ref")
        if not isinstance(reference, str) or _target(references, reference) is not None:
            return known
        if not reference.startswith("#") and "$id" in schema:
            return known
        broken.append(reference)
        return _opened(reference, None, {key: known[key] for key in known if key != "$ref"})

    return mended(schema), tuple(broken)


class _Inliner:
    def __init__(self, root: WireObject, deepest: int) -> None:
        self._deepest = deepest
        self._references = References(root)
        self._sizes: dict[str, int] = {}
        self._left = _MOST
        self._characters_left = _MOST_CHARACTERS
        self.is_looser = False
        self.has_room = True

    def without_refs(self, schema: WireObject, trail: tuple[str, ...], depth: int) -> dict[str, Any]:
        """Replace the references; `trail` are those that have led here."""
        self._left -= 1
        kept = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
        reference = kept.get("$ref")
        if not isinstance(reference, str):
            return rebuilt(kept, lambda inside: self._inside(inside, trail, depth + 1))
        del kept["$ref"]
        beside = rebuilt(kept, lambda inside: self._inside(inside, trail, depth + 1))
        target = _target(self._references, reference)
        if target is None or reference in trail or depth > self._deepest or not self._takes(reference, target):
            self.is_looser = True
            return _opened(reference, target, beside)
        whole = self.without_refs(target, (*trail, reference), depth + 1)
        if all(key in _WORDS or key not in whole for key in beside):
            return {**whole, **beside}
        return {**beside, "allOf": [*beside.get("allOf", ()), whole]}

    def _takes(self, reference: str, target: WireObject) -> bool:
        """Whether this much may still be inserted for a reference; if so, deduct it from the allowance."""
        size = self._sizes.get(reference)
        if size is None:
            size = self._sizes[reference] = size_of(target, most=_MOST_CHARACTERS).total
        if self._left <= 0 or size > self._characters_left:
            self.has_room = False
            return False
        self._characters_left -= size
        return True

    def _inside(self, schema: Any, trail: tuple[str, ...], depth: int) -> Any:
        return self.without_refs(schema, trail, depth) if is_object(schema) else schema


def _target(references: References, reference: str) -> WireObject | None:
    found = references.resolve(reference)
    if isinstance(found, bool):
        return {} if found else {"not": {}}
    return found if is_object(found) else None


def _opened(reference: str, target: WireObject | None, beside: WireObject) -> dict[str, Any]:
    """Return the replacement for a reference that is not followed."""
    name = plain(reference.rsplit("/", 1)[-1].strip("#"), 60)
    descriptions = [
        text for text in (beside.get("description"), (target or {}).get("description")) if isinstance(text, str)
    ]
    if target is None:
        words = f"{name}: its definition is missing" if name else "its definition is missing"
    else:
        words = f"{name}, in the same form as above" if name else "in the same form as the whole"
    kind = {} if target is None or "type" not in target else {"type": target["type"]}
    return {**kind, **beside, "description": " ".join((*descriptions[:1], f"({words})"))}

"""References in a tool's schema, replaced by what they lead to: for hosts that drop the definitions.

Nothing is fetched. Bounded for every schema: what leads back to itself, out of the schema, nowhere, or on for too long,
becomes a schema without constraints, with words that say what stood there.
"""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.catalogue.faults import DEEPEST, rebuilt, resolve
from gateway.core.model.wire import WireObject
from gateway.core.wording import plain

_DEFINITIONS = frozenset({"$defs", "definitions"})
_WORDS = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"})
"""Members beside a `$ref` that say something about it and demand nothing."""
_MOST = 5_000
"""How many schemas the inlined one may be made of: definitions that double one another grow without end."""
_DEEPEST = 2 * DEEPEST


def inlined(schema: WireObject) -> tuple[dict[str, Any], bool]:
    """The schema without any reference into itself, and whether it takes more than before."""
    inliner = _Inliner(schema)
    return inliner.without_refs(schema, ("#",), 0), inliner.is_looser


def without_broken_refs(schema: WireObject) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The schema without references that lead nowhere or elsewhere, and those: many hosts refuse every tool for one.

    In a schema with an `$id` other addresses may be its own, and are left.
    """
    broken: list[str] = []

    def mended(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        known = rebuilt(cast("WireObject", value), mended)
        reference = known.get("$ref")
        if not isinstance(reference, str) or _target(schema, reference) is not None:
            return known
        if not reference.startswith("#") and "$id" in schema:
            return known
        broken.append(reference)
        return _opened(reference, None, {key: known[key] for key in known if key != "$ref"})

    return mended(schema), tuple(broken)


class _Inliner:
    def __init__(self, root: WireObject) -> None:
        self._root = root
        self._left = _MOST
        self.is_looser = False

    def without_refs(self, schema: WireObject, trail: tuple[str, ...], depth: int) -> dict[str, Any]:
        """`trail` are the references that have led here."""
        self._left -= 1
        kept = {key: value for key, value in schema.items() if key not in _DEFINITIONS}
        reference = kept.get("$ref")
        if not isinstance(reference, str):
            return rebuilt(kept, lambda inside: self._inside(inside, trail, depth + 1))
        del kept["$ref"]
        beside = rebuilt(kept, lambda inside: self._inside(inside, trail, depth + 1))
        target = _target(self._root, reference)
        if target is None or reference in trail or depth > _DEEPEST or self._left <= 0:
            self.is_looser = True
            return _opened(reference, target, beside)
        whole = self.without_refs(target, (*trail, reference), depth + 1)
        if all(key in _WORDS or key not in whole for key in beside):
            return {**whole, **beside}
        return {**beside, "allOf": [*beside.get("allOf", ()), whole]}

    def _inside(self, schema: Any, trail: tuple[str, ...], depth: int) -> Any:
        known = cast("WireObject", schema)
        return self.without_refs(known, trail, depth) if isinstance(schema, Mapping) else schema


def _target(root: WireObject, reference: str) -> WireObject | None:
    found = resolve(root, reference)
    if isinstance(found, bool):
        return {} if found else {"not": {}}
    return cast("WireObject", found) if isinstance(found, Mapping) else None


def _opened(reference: str, target: WireObject | None, beside: WireObject) -> dict[str, Any]:
    """What stands in the place of a reference that is not followed."""
    name = plain(reference.rsplit("/", 1)[-1].strip("#"), 60)
    told = [text for text in (beside.get("description"), (target or {}).get("description")) if isinstance(text, str)]
    if target is None:
        words = f"{name}: its definition is missing" if name else "its definition is missing"
    else:
        words = f"{name}, in the same form as above" if name else "in the same form as the whole"
    kind = {} if target is None or "type" not in target else {"type": target["type"]}
    return {**kind, **beside, "description": " ".join((*told[:1], f"({words})"))}

"""Fit a tool's schema into the bytes that a host accepts: remove words first, then details, then structure."""

from collections.abc import Callable, Iterator
from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.json_size import wire_bytes
from gateway.core.model.json_values import as_object, is_object
from gateway.core.model.texts import cut
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.faults import DEEPEST, Fault, faults, rebuilt

_SHORT = (200, 60)
"""Lengths in characters to cut descriptions to; each is tried from the innermost schemas outwards."""
_ASIDE = ("examples", "title", "default", "$comment")
_LARGEST = 256 * 1024
"""Characters of a schema above which its words are not removed step by step, as each step processes all of it."""
_NAMES = 1_000
"""Maximum characters of a list of names, in words, if the names do not fit as properties."""

_Edit = Callable[[WireObject], dict[str, Any]]


def is_too_deep(schema: WireObject, look: Callable[[Any], tuple[Fault, ...]] = faults) -> bool:
    """Whether a schema is nested too deeply, or is too large, to be edited."""
    return any(fault.kind == "deep" for fault in look(schema))


def fit_schema(schema: WireObject, limit: int) -> tuple[dict[str, Any], str | None]:
    """Fit the schema into this many bytes by leaving out only words; return it and what was done (None: too large).

    It accepts the same arguments as before.
    """
    if (size := wire_bytes(schema)) <= limit:
        return dict(schema), ""
    if size > max(_LARGEST, 2 * limit):
        return dict(schema), None
    shown = dict(schema)
    for words, step in _steps(schema):
        shown = step(shown)
        if wire_bytes(shown) <= limit:
            return shown, words
    return shown, None


def bare(schema: WireObject, limit: int) -> tuple[dict[str, Any], str]:
    """Reduce the schema to the names and plain types of its properties, with a sentence for the model.

    If those do not fit either, it becomes any object, and the sentence lists the names.
    """
    properties = as_object(schema.get("properties"))
    shown: dict[str, Any] = {
        "type": "object",
        "properties": {name: _kind(property) for name, property in properties.items()},
    }
    if "required" in schema:
        shown["required"] = schema["required"]
    words = "The details of its arguments are too long for this host, and are checked when it is called."
    if wire_bytes(shown) <= limit:
        return shown, words
    names = cut(", ".join(plain(name, 60) for name in properties), _NAMES)
    return {"type": "object"}, f"{words} They are: {names}."


def _steps(schema: WireObject) -> Iterator[tuple[str, Callable[[WireObject], dict[str, Any]]]]:
    deepest = _depth(schema)
    for longest in _SHORT:
        for depth in range(deepest, -1, -1):
            yield f"descriptions inside cut to {longest} characters", _at(depth, _shortened(longest))
    yield "examples, titles and defaults left out", _at(None, _without(*_ASIDE))
    for depth in range(deepest, 1, -1):
        yield "descriptions of inner properties left out", _at(depth, _without("description"))


def _shortened(longest: int) -> _Edit:
    def edit(schema: WireObject) -> dict[str, Any]:
        edited = {key: value for key, value in schema.items() if key != "examples"}
        if isinstance(described := edited.get("description"), str):
            edited["description"] = cut(described, longest)
        return edited

    return edit


def _without(*members: str) -> _Edit:
    return lambda schema: {key: value for key, value in schema.items() if key not in members}


def _at(wanted: int | None, edit: _Edit) -> Callable[[WireObject], dict[str, Any]]:
    """Return an edit of the schemas at one depth (None: at every depth)."""

    def edited(schema: Any, depth: int) -> Any:
        if not is_object(schema):
            return schema
        inside = rebuilt(schema, lambda below: edited(below, depth + 1)) if wanted is None or depth < wanted else schema
        return edit(inside) if wanted in (None, depth) else inside

    return lambda schema: edited(schema, 0)


def _depth(schema: WireObject) -> int:
    """Return the depth of the deepest schema."""
    found = 0

    def look(value: Any, depth: int) -> Any:
        nonlocal found
        if is_object(value) and depth <= DEEPEST:
            found = max(found, depth)
            rebuilt(value, lambda below: look(below, depth + 1))
        return None

    look(schema, 0)
    return found


def _kind(schema: Any) -> dict[str, Any]:
    kind = as_object(schema).get("type")
    return {"type": kind} if isinstance(kind, str) else {}

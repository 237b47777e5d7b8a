"""Pins: a tool as it was when it was pinned, and in words how it differs from that now.

What a model is told about a tool may be reworded. Everything that decides what a call does, what is asked of the user
for it, and who answers it may not: schemas, annotations, the page, and the server's name.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gateway.core.fact_words import plain
from gateway.core.model.canonical_json import digest_of_json
from gateway.core.model.json_values import as_list, as_object, is_object
from gateway.core.tools.catalogue.faults import DEEPEST, rebuilt

_WORDS = ("title", "description", "$comment")
_LONGEST = 80
_MOST_DIFFERENCES = 12
_KEPT = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class Difference(NamedTuple):
    """One difference, in words. `is_wording`: whether it only concerns what a model is told."""

    words: str
    is_wording: bool = False


def pinned_form(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a tool that is pinned."""
    kept = {key: tool[key] for key in _KEPT if key in tool}
    interface = as_object(tool.get("_meta")).get("ui")
    return kept if interface is None else {**kept, "ui": interface}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Compare two pinned forms of a tool; empty if they are the same."""
    found = [*_in_arguments(before.get("inputSchema"), now.get("inputSchema"))]
    if _demands(before.get("outputSchema")) != _demands(now.get("outputSchema")):
        found.append(Difference("its output schema has changed"))
    found += _in_annotations(as_object(before.get("annotations")), as_object(now.get("annotations")))
    if before.get("ui") != now.get("ui"):
        was, is_now = (_shown(as_object(form.get("ui")).get("resourceUri")) for form in (before, now))
        moved = f": it was {was}, and is {is_now}" if was != is_now else ""
        found.append(Difference(f"its page has changed{moved}"))
    for member in ("title", "description"):
        if before.get(member) != now.get(member):
            found.append(Difference(f"its {member} is worded differently", is_wording=True))
    if not found and digest_of_json(before) != digest_of_json(now):
        found.append(Difference("descriptions in its schemas are worded differently", is_wording=True))
    return found[:_MOST_DIFFERENCES]


def server_difference(before: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> Difference | None:
    """Compare two servers by their names; None if they are the same, or one of them is unknown."""
    was, is_now = as_object(before).get("name"), as_object(now).get("name")
    if was is None or is_now is None or was == is_now:
        return None
    return Difference(f"the server calls itself {_shown(is_now)}, and called itself {_shown(was)}")


def _in_arguments(before: Any, now: Any) -> Iterator[Difference]:
    """Yield the differences between two input schemas: by argument, or as a whole if it is not the arguments."""
    old, new = _demands(before), _demands(now)
    if old == new:
        return
    was, is_now = as_object(as_object(old).get("properties")), as_object(as_object(new).get("properties"))
    needed, needs = (_names(as_object(schema).get("required")) for schema in (old, new))
    found = 0
    for name in dict.fromkeys((*is_now, *was)):
        if (words := _of_argument(name, was, is_now, needed, needs)) is not None:
            found += 1
            yield Difference(f"argument {_shown(name)} {words}")
    others = {"properties", "required"}
    rest = [
        key
        for key in dict.fromkeys((*as_object(old), *as_object(new)))
        if key not in others and as_object(old).get(key) != as_object(new).get(key)
    ]
    if rest or not found:
        yield Difference(f"its input schema has changed{': ' + _shown(', '.join(rest)) if rest else ''}")


def _of_argument(
    name: str, was: Mapping[str, Any], now: Mapping[str, Any], needed: frozenset[str], needs: frozenset[str]
) -> str | None:
    required = {False: "optional", True: "required"}
    if name not in was:
        return f"is new and {required[name in needs]}"
    if name not in now:
        return "is gone"
    before, after = (as_object(properties[name]).get("type") for properties in (was, now))
    words: list[str] = []
    if before != after:
        words.append(f"was of type {_shown(before)}, and is of type {_shown(after)}")
    elif was[name] != now[name]:
        words.append("takes other values")
    if (name in needed) != (name in needs):
        words.append(f"is now {required[name in needs]}")
    return " and ".join(words) or None


def _in_annotations(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for hint in dict.fromkeys((*before, *now)):
        if before.get(hint) != now.get(hint):
            was, is_now = _shown(before.get(hint)), _shown(now.get(hint))
            yield Difference(f"{_shown(hint)} was {was}, and is {is_now}", is_wording=hint == "title")


def _demands(schema: Any, depth: int = 0) -> Any:
    """Return the schema without what only describes. Subschemas deeper than hosts take are compared as they are."""
    if not is_object(schema) or depth > DEEPEST:
        return schema
    edited = rebuilt(schema, lambda below: _demands(below, depth + 1))
    return {key: value for key, value in edited.items() if key not in _WORDS}


def _names(value: Any) -> frozenset[str]:
    names: Sequence[Any] = as_list(value)
    return frozenset(name for name in names if isinstance(name, str))


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str), _LONGEST)

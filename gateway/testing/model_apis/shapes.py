"""The shape of JSON as data: the members of an object, and the values allowed in each.

A shape is a type (`str`), a set of allowed values, a list of one shape (an array that is not empty), an object
(`{"text": str, "title?": str}`; `?` marks members that may be missing or null, `"*": object` allows others), `AnyOf`,
`Many` (an array that may be empty), `Tagged` (objects distinguished by one member) or `OneMember` (exactly one of
several members).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.model.json_values import is_list, is_object

OTHERS = {"*": object}
"""Allows other members, which are not checked."""


@dataclass(frozen=True)
class AnyOf:
    """Any of several shapes."""

    shapes: tuple[Any, ...]


@dataclass(frozen=True)
class Tagged:
    """An object whose member `key` names its shape; without that member it has the `default` shape."""

    kinds: Mapping[str, Any]
    key: str = "type"
    default: str | None = None


@dataclass(frozen=True)
class OneMember:
    """An object with exactly one of these members, and optionally those of `beside`."""

    kinds: Mapping[str, Any]
    beside: Mapping[str, Any]


@dataclass(frozen=True)
class Many:
    """An array that may be empty."""

    one: Any


def mismatches(value: Any, shape: Any, where: str = "request") -> Iterator[str]:
    """Return where and how `value` does not match `shape`, one line for each place."""
    check = next(check for kind, check in _CHECKS if isinstance(shape, kind))
    return check(value, shape, where)


def _any_of(value: Any, shape: AnyOf, where: str) -> Iterator[str]:
    found = [list(mismatches(value, one, where)) for one in shape.shapes]
    if [] not in found:
        # The closest shape gives the message: the one whose mismatch is deepest, or the last of these.
        yield from max(reversed(found), key=lambda lines: lines[0].split(":", 1)[0].count("."))


def _one_member(value: Any, shape: OneMember, where: str) -> Iterator[str]:
    present = [name for name in shape.kinds if isinstance(value, Mapping) and name in value]
    if len(present) != 1:
        yield f"{where}: exactly one of {_names(shape.kinds)} is expected"
    else:
        yield from mismatches(value, {present[0]: shape.kinds[present[0]], **shape.beside}, where)


def _type(value: Any, shape: type, where: str) -> Iterator[str]:
    if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
        yield f"{where}: {_JSON[shape]} is expected"


def _value(value: Any, shape: frozenset[str], where: str) -> Iterator[str]:
    if not isinstance(value, str) or value not in shape:
        yield f"{where}: {value!r:.40} is not one of {_names(shape)}"


def _array(value: Any, shape: "list[Any] | Many", where: str) -> Iterator[str]:
    if not is_list(value) or not (value or isinstance(shape, Many)):
        yield f"{where}: an array{'' if isinstance(shape, Many) else ' that is not empty'} is expected"
        return
    one = shape.one if isinstance(shape, Many) else shape[0]
    for number, item in enumerate(value):
        yield from mismatches(item, one, f"{where}[{number}]")


def _tagged(value: Any, shape: Tagged, where: str) -> Iterator[str]:
    if not is_object(value):
        yield f"{where}: an object is expected"
        return
    kind = value.get(shape.key, shape.default)
    if not isinstance(kind, str) or kind not in shape.kinds:
        yield f"{where}.{shape.key}: {kind!r:.40} is not one of {_names(shape.kinds)}"
    else:
        one = shape.kinds[kind]
        tag: dict[str, Any] = {f"{shape.key}?": str}
        yield from mismatches(value, {**tag, **one} if isinstance(one, Mapping) else one, where)


def _members(value: Any, shape: Mapping[str, Any], where: str) -> Iterator[str]:
    if not is_object(value):
        yield f"{where}: an object is expected"
        return
    for name, one in shape.items():
        key = name.removesuffix("?")
        if key == "*" or (name.endswith("?") and value.get(key) is None):
            continue
        if key not in value:
            yield f"{where}.{key}: it is required"
        else:
            yield from mismatches(value[key], one, f"{where}.{key}")
    if "*" not in shape:
        known = {name.removesuffix("?") for name in shape}
        yield from (f"{where}.{key}: extra members are not permitted" for key in value if key not in known)


def _names(values: Mapping[str, Any] | frozenset[str]) -> str:
    return ", ".join(f"'{value}'" for value in (sorted(values) if isinstance(values, frozenset) else values))


_JSON: dict[type, str] = {
    str: "a string",
    bool: "true or false",
    int: "a number",
    dict: "an object",
    list: "an array",
    object: "a value",
}
_CHECKS: tuple[tuple[Any, Callable[[Any, Any, str], Iterator[str]]], ...] = (
    (AnyOf, _any_of),
    (Tagged, _tagged),
    (OneMember, _one_member),
    (type, _type),
    (frozenset, _value),
    ((list, Many), _array),
    (Mapping, _members),
)

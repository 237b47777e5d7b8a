"""Finding faults in the JSON schema of a tool that make hosts and model APIs fail.

No reference is ever fetched. The faults looked for are those that cost a tool (and with some hosts every tool): a root
that is not an object, references that lead nowhere or elsewhere, members of the wrong kind.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gateway.core.model.json_values import is_list, is_object

TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
DEEPEST = 40
_MOST = 5_000
"""Maximum number of subschemas of one schema that are examined."""
_MOST_KNOWN = 4_096

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")

Kind = Literal["root", "external", "dangling", "malformed", "empty", "deep"]


@dataclass(frozen=True)
class Fault:
    """One fault: its place in the schema (`properties.when`; empty: the root), and a description."""

    kind: Kind
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class FaultMemo:
    """`faults`, computed once for each schema object: catalogues of many profiles are built from the same lists.

    It keeps the schemas that it was asked about, so it must be discarded when the lists change.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, tuple[Fault, ...]]] = {}

    def __call__(self, schema: Any) -> tuple[Fault, ...]:
        """Return the faults of a schema, as `faults` does."""
        # Keyed by identity: the schema is kept with its faults, so no other one can get the same id.
        known = self._known.get(id(schema))
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[id(schema)] = (schema, faults(schema))
        return known[1]


def faults(schema: Any) -> tuple[Fault, ...]:
    """Find the faults of a tool's schema, in the order of the schema; empty if it has none.

    Linear in the size of the schema, of which at most `_MOST` subschemas are examined.
    """
    if not is_object(schema):
        return (Fault("root", "", "is not an object"),)
    found: list[Fault] = []
    if schema.get("type") != "object":
        found.append(Fault("root", "", f'its type is {schema.get("type")!r}, but must be "object"'))
    found.extend(_walk(schema))
    return tuple(found)


class References:
    """The targets of references within one schema. Its anchors are indexed once, on first use."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self._anchors: dict[str, Any] | None = None

    def resolve(self, reference: str) -> Any:
        """Return the target of a reference; None if it leads nowhere, or outside of the schema."""
        if reference == "#":
            return self.root
        if reference.startswith("#/"):
            return _pointed(self.root, reference)
        if not reference.startswith("#"):
            return None
        if self._anchors is None:
            self._anchors = dict(_anchors(self.root))
        return self._anchors.get(reference[1:])


def resolve(root: Mapping[str, Any], reference: str) -> Any:
    """Resolve a single reference; see `References.resolve`."""
    return References(root).resolve(reference)


def _pointed(root: Mapping[str, Any], reference: str) -> Any:
    """Return the target of a JSON pointer (RFC 6901) in a fragment; None if it leads nowhere."""
    value: Any = root
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if is_object(value) and key not in value:
            key = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), key)
        if is_object(value) and key in value:
            value = value[key]
        elif is_list(value) and _is_index(key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _is_index(key: str) -> bool:
    # `isdigit` alone accepts superscripts, and `int` refuses numbers of thousands of digits.
    return key.isascii() and key.isdigit() and len(key) < 10


def _walk(root: Mapping[str, Any]) -> Iterator[Fault]:
    references = References(root)
    waiting: list[tuple[str, Any, int]] = [("", root, 0)]
    count = 0
    while waiting:
        where, schema, depth = waiting.pop()
        count += 1
        if depth > DEEPEST or count > _MOST:
            yield Fault("deep", where, "is nested deeper, or larger, than hosts and model APIs take")
            return
        if isinstance(schema, bool):
            continue
        if not is_object(schema):
            yield Fault("malformed", where, "is not a schema")
            continue
        yield from _own(references, where, schema)
        waiting.extend(reversed([(place, below, depth + 1) for place, below in _below(where, schema)]))


def _own(references: References, where: str, schema: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the faults of one subschema itself."""
    reference = schema.get("$ref")
    if reference is not None:
        yield from _reference(references, where, reference)
    declared: Any = schema.get("type")
    if declared is not None:
        kinds: list[Any] = declared if is_list(declared) else [declared]
        wrong = [kind for kind in kinds if not isinstance(kind, str) or kind not in TYPES]
        if wrong or not kinds:
            yield Fault("malformed", where, f"there is no type {str(wrong[0] if wrong else kinds)[:40]!r}")
    for member, value in schema.items():
        if (rule := _MEMBERS.get(member)) is not None and not rule[0](value):
            yield Fault("malformed", where, f"{member} is not {rule[1]}")
    if schema.get("enum") == []:
        yield Fault("empty", where, "enum has no values")


def _reference(references: References, where: str, reference: Any) -> Iterator[Fault]:
    if not isinstance(reference, str):
        yield Fault("malformed", where, "$ref is not text")
    elif not reference.startswith("#"):
        yield Fault("external", where, f"$ref leads out of the schema, to {reference[:80]!r}")
    elif references.resolve(reference) is None:
        yield Fault("dangling", where, f"$ref {reference[:80]!r} leads nowhere")


def _is_map(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)  # booleans too: `exclusiveMinimum: true` was valid up to draft 4


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _are_names(value: Any) -> bool:
    return is_list(value) and all(isinstance(name, str) for name in value)


_MEMBERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "required": (_are_names, "a list of names"),
    "enum": (_is_list, "a list of values"),
    **dict.fromkeys(("title", "description", "pattern", "format"), (_is_text, "text")),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_is_number, "a number")),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties"), (_is_count, "a count")),
    **dict.fromkeys(_MAPS, (_is_map, "an object")),
    **dict.fromkeys(_LISTS, (_is_list, "a list")),
}
_INSIDE = frozenset((*_MAPS, *_LISTS, *_SINGLES))


def _below(where: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas within a schema, with their places."""
    before = f"{where}." if where else ""
    for member, below in schema.items():
        if member not in _INSIDE:
            continue
        if is_object(below) and member in _MAPS:
            for name, one in below.items():
                yield f"{before}{member}.{str(name)[:60]}", one
        elif is_list(below):  # also `items`, up to draft 2019-09
            yield from ((f"{before}{member}[{at}]", one) for at, one in enumerate(below))
        elif below is not None and member in _SINGLES:
            yield f"{before}{member}", below


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas directly within a schema, each with the member that it is in."""
    for member in _INSIDE.intersection(schema):
        inside: Any = schema[member]
        if is_object(inside) and member in _MAPS:
            yield from ((member, one) for one in inside.values())
        elif is_list(inside):
            yield from ((member, one) for one in inside)
        else:
            yield member, inside


def rebuilt(schema: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Apply `change` to each schema directly within a schema; every other member stays the same."""
    new = dict(schema)
    for member in _INSIDE.intersection(schema):
        inside = schema[member]
        if is_object(inside) and member in _MAPS:
            new[member] = {name: change(one) for name, one in inside.items()}
        elif is_list(inside):
            new[member] = [change(one) for one in inside]
        elif is_object(inside):
            new[member] = change(inside)
    return new


def _anchors(root: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the subschemas with an `$anchor`, each under its name; in reverse, so that the first of two counts."""
    found: list[tuple[str, Any]] = []
    waiting: list[tuple[Any, int]] = [(root, 0)]
    for _ in range(_MOST):
        if not waiting:
            break
        schema, depth = waiting.pop()
        if is_object(schema) and depth <= DEEPEST:
            if isinstance(name := schema.get("$anchor"), str):
                found.append((name, schema))
            waiting.extend(reversed([(below, depth + 1) for _, below in subschemas(schema)]))
    return reversed(found)

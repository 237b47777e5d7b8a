"""Merging alternatives at the root of a tool's schema into one object, for hosts that accept none there.

The merged schema accepts everything that the original does; what it no longer says is put in words, and checked when
the tool is called.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.core.fact_words import plain
from gateway.core.model.json_size import size_of
from gateway.core.model.json_values import as_list, is_object
from gateway.core.model.texts import cut
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue.faults import References

_ALTERNATIVES = {"anyOf": "At least one of these must be given", "oneOf": "Exactly one of these must be given"}
_MERGED = (*_ALTERNATIVES, "allOf", "not", "enum")
_DEEPEST = 8
_MOST = 1_000_000
"""Maximum characters of alternatives merged, references included: definitions that name one another have more."""
_EACH = 50
"""Minimum number of characters that each alternative counts for."""
_MOST_NAMED = 12
_LONGEST_SENTENCE = 2_000
_MOST_SENTENCES = 20


@dataclass(frozen=True)
class Merged:
    """A schema without alternatives at its root; what it no longer says, as sentences; whether it accepts more."""

    schema: dict[str, Any]
    sentences: tuple[str, ...] = ()
    is_looser: bool = False


def with_object_root(schema: WireObject) -> Merged:
    """Return the schema with a plain object at its root, unchanged if it has one already."""
    if not any(member in schema for member in _MERGED):
        return Merged(dict(schema))
    flat = _Flattening(schema).flat(schema, 0)
    kept = {key: value for key, value in schema.items() if key not in _MERGED}
    if flat.properties or "properties" in kept:
        kept["properties"] = flat.properties
    if flat.required or "required" in kept:
        kept["required"] = list(flat.required)
    return Merged(kept, tuple(dict.fromkeys(flat.sentences))[:_MOST_SENTENCES], flat.is_looser)


@dataclass
class _Flat:
    """The known facts about an object: its properties, the required ones, and what a schema cannot express."""

    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: dict[str, None] = field(default_factory=dict[str, None])
    sentences: list[str] = field(default_factory=list[str])
    is_looser: bool = False

    def also(self, other: "_Flat") -> None:
        """Add what also holds."""
        for name, schema in other.properties.items():
            if name not in self.properties:
                self.properties[name] = schema
            elif self.properties[name] != schema:
                self.properties[name], exact = _both(self.properties[name], schema)
                self.is_looser = self.is_looser or not exact
        self.required |= other.required
        self.sentences += other.sentences
        self.is_looser = self.is_looser or other.is_looser


class _Flattening:
    """Merges one schema's alternatives, within a bound on the work."""

    def __init__(self, root: WireObject) -> None:
        self._references = References(root)
        self._left = _MOST

    def flat(self, schema: Any, depth: int) -> _Flat:
        """Return what a schema says of an object; beyond the bounds, nothing, which is less than it says."""
        if not is_object(schema) or depth > _DEEPEST or self._left <= 0:
            return _Flat(is_looser=schema is not True)
        self._left -= _EACH + size_of(schema, most=_MOST).total
        properties, required = schema.get("properties"), schema.get("required")
        flat = _Flat(
            dict(properties) if is_object(properties) else {},
            dict.fromkeys(cast("list[str]", required)) if isinstance(required, list) else {},
            is_looser="not" in schema or "enum" in schema,
        )
        if isinstance(schema.get("$ref"), str) and depth:
            flat.also(self.flat(self._references.resolve(schema["$ref"]), depth + 1))
        for branch in _branches(schema, "allOf"):
            flat.also(self.flat(branch, depth + 1))
        for member, words in _ALTERNATIVES.items():
            branches = [self.flat(branch, depth + 1) for branch in _branches(schema, member)]
            if branches:
                flat.also(_either(branches, words, flat.required))
        forbidden = schema.get("not")
        if is_object(forbidden) and _named(forbidden.get("required")):
            flat.sentences.append(f"Do not give all of these together: {_named(forbidden.get('required'))}.")
        return flat


def _either(branches: Sequence[_Flat], words: str, given: Mapping[str, None]) -> _Flat:
    """Return what holds for every branch; `given` are the properties that are always present."""
    properties: dict[str, list[Any]] = {}
    for branch in branches:
        for name, schema in branch.properties.items():
            properties.setdefault(name, []).append(schema)
    sets = [_set(branch, given) for branch in branches]
    sentences = [cut(f"{words}: {'; '.join(dict.fromkeys(sets))}.", _LONGEST_SENTENCE)] if len(set(sets)) > 1 else []
    return _Flat(
        {name: _any_of(schemas) for name, schemas in properties.items()},
        {name: None for name in branches[0].required if all(name in branch.required for branch in branches)},
        [*sentences, *(sentence for branch in branches for sentence in branch.sentences)],
        is_looser=True,
    )


def _set(branch: _Flat, given: Mapping[str, None]) -> str:
    """Describe the arguments that make up a branch: `kind "circle" and radius`."""
    fixed = {name: values for name, schema in branch.properties.items() if len(values := _values(schema)) == 1}
    names = [name for name in {**branch.required, **fixed} if name not in given or name in fixed]
    words = [
        plain(name, 60) + (f' "{plain(str(fixed[name][0]), 60)}"' if name in fixed else "")
        for name in names[:_MOST_NAMED]
    ]
    return " and ".join(words) or "none of them"


def _named(names: Any) -> str:
    return ", ".join(plain(str(name), 60) for name in as_list(names)[:_MOST_NAMED])


def _branches(schema: WireObject, member: str) -> list[Any]:
    return as_list(schema.get(member))


def _values(schema: Any) -> list[Any]:
    """Return the only values that a schema accepts, if it lists them; otherwise an empty list."""
    if not is_object(schema):
        return []
    return [schema["const"]] if "const" in schema else as_list(schema.get("enum"))


def _any_of(schemas: Iterable[Any]) -> Any:
    """Return a schema that accepts whatever one of these accepts."""
    different = _different(schemas)
    if len(different) == 1:
        return different[0]
    values = [_values(schema) for schema in different]
    if not all(values):
        return {"anyOf": different}
    first = {key: value for key, value in different[0].items() if key not in ("const", "enum", "default", "title")}
    united = _different(value for some in values for value in some)
    if any(schema.get("type") != first.get("type") for schema in different):
        first.pop("type", None)
    return {**first, "enum": united}


def _different(values: Iterable[Any]) -> list[Any]:
    """Return the values without duplicates."""
    # By their JSON: comparing each with each costs their number squared, and in Python `1` equals `true`.
    different: dict[str, Any] = {}
    for value in values:
        different.setdefault(json.dumps(value, sort_keys=True), value)
    return list(different.values())


def _both(one: Any, other: Any) -> tuple[Any, bool]:
    """Return a schema for what both of these accept, and whether it accepts no more than that."""
    if is_object(one) and is_object(other) and all(one[key] == other[key] for key in one if key in other):
        return {**one, **other}, True
    return cast("Any", (other, True) if one is True else (one, False))

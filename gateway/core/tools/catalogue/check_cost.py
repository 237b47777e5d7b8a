"""Counting in advance how much work it is to check a value against a tool's schema.

Validators of JSON Schema follow every reference: definitions that refer to each other twice take one page of text and
never end. Nothing that runs in this process can be interrupted, so a check that costs too much is not begun.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from gateway.core.model.json_size import size_of
from gateway.core.tools.catalogue.faults import Fault, References, faults, subschemas
from gateway.core.tools.catalogue.patterns import states

MOST_STEPS = 2_000_000
"""Steps of one check: about 20 ms. A step applies a schema to a value, or a state of a pattern to a character."""
_MOST_PAIRS = 10_000
"""Maximum number of pairs of a schema and a value that are counted."""
_DEEPEST = 120
"""Maximum number of schemas applied within one another, including references."""
_MOST_CHARACTERS = 2_000_000
"""Maximum characters of a whole schema: all of it is compiled."""
_MOST_PATTERNS = 100

_UNCOUNTED = frozenset(
    {"$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties", "$vocabulary", "$dynamicAnchor"}
)
"""Keywords that make a validator look at the same schemas repeatedly, an unknown number of times."""

_DEFINITIONS = frozenset({"$defs", "definitions"})
_IN_PLACE = ("allOf", "anyOf", "oneOf")
_IN_PLACE_ONE = ("not", "if", "then", "else")
_IN_PLACE_MAPS = ("dependentSchemas", "dependencies")
_TO_ITEMS = ("items", "additionalItems", "contains")
_COMPARED = ("enum", "const")


class TooMuchWork(Exception):
    """The check would cost too much, or its cost cannot be counted."""


def check_compilable(schema: Mapping[str, Any], look: Callable[[Any], tuple[Fault, ...]] = faults) -> None:
    """Check that a schema can be compiled. Raises TooMuchWork if it is too large, or cannot be counted.

    `look` finds the faults of a schema. Linear in the size of the schema.
    """
    if size_of(schema, most=_MOST_CHARACTERS).total > _MOST_CHARACTERS:
        raise TooMuchWork("it is too large")
    if any(fault.kind == "deep" for fault in look(schema)):
        raise TooMuchWork("it is too deeply nested, or too large, to be checked")
    patterns = 0
    old = isinstance(said := schema.get("$schema"), str) and "draft-04" in said
    waiting: list[Any] = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(cast("list[Any]", value))
        elif isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            has_own_address = isinstance(members.get("id" if old else "$id"), str) and value is not schema
            if has_own_address or not _UNCOUNTED.isdisjoint(members):
                raise TooMuchWork("it refers to schemas in a way that cannot be counted")
            of_names = members.get("patternProperties")
            named = len(cast("Mapping[str, Any]", of_names)) if isinstance(of_names, Mapping) else 0
            patterns += named + ("pattern" in members)
            waiting.extend(members.values())
    if patterns > _MOST_PATTERNS:
        raise TooMuchWork("it has too many patterns")
    _Expansion(schema).size(schema, 0)


def check_steps(schema: Mapping[str, Any], value: Any) -> int:
    """Return the maximum number of steps of a check of `value`. Raises TooMuchWork above `MOST_STEPS`.

    The schema must have passed `check_compilable`. Each pair of a schema and a value is counted once, however often it
    occurs.
    """
    return _Count(schema).of(schema, value, 0)


class _Expansion:
    """Counts the schemas that result if each reference is written out, circular ones once."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._references = References(root)
        self._known: dict[int, int] = {}

    def size(self, schema: Any, depth: int) -> int:
        """Count the schemas. Raises TooMuchWork above `MOST_STEPS`. Linear in the size of the schema."""
        if not isinstance(schema, Mapping):
            return 1
        rule = cast("Mapping[str, Any]", schema)
        if (known := self._known.get(id(rule))) is not None:
            return known
        if depth > _DEEPEST:
            raise TooMuchWork("its chain of references is too long")
        self._known[id(rule)] = total = 1
        if isinstance(reference := rule.get("$ref"), str):
            total += self.size(self._references.resolve(reference), depth + 1)
        for name, below in subschemas(rule):
            total += 0 if name in _DEFINITIONS else self.size(below, depth + 1)
        if total > MOST_STEPS:
            raise TooMuchWork("its definitions refer to one another too often")
        self._known[id(rule)] = total
        return total


class _Count:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._references = References(root)
        self._known: dict[tuple[int, int], int] = {}
        self._own: dict[int, tuple[int, int, int]] = {}

    def of(self, schema: Any, value: Any, depth: int) -> int:
        if not isinstance(schema, Mapping):
            return 1
        rule = cast("Mapping[str, Any]", schema)
        # Schema and value live as long as the count, so no two of either have the same id.
        pair = (id(rule), id(value))
        known = self._known.get(pair)
        if known is not None:
            if known < 0:
                raise TooMuchWork("its references are circular")
            return known
        if depth > _DEEPEST or len(self._known) >= _MOST_PAIRS:
            raise TooMuchWork("it applies too many schemas")
        self._known[pair] = -1
        total = self._itself(rule, value)
        for applied, to in self._applied(rule, value):
            total += self.of(applied, to, depth + 1)
            if total > MOST_STEPS:
                raise TooMuchWork("its references multiply")
        self._known[pair] = total
        return total

    def _itself(self, rule: Mapping[str, Any], value: Any) -> int:
        """Return the steps of a schema's own keywords."""
        own = self._own.get(id(rule))
        if own is None:
            compared = sum(size_of(rule[key], most=MOST_STEPS).total for key in _COMPARED if key in rule)
            required: Any = rule.get("required")
            of_names = rule.get("patternProperties")
            once = 1 + len(rule) + compared + (len(cast("list[Any]", required)) if isinstance(required, list) else 0)
            each = sum(map(states, cast("Mapping[str, Any]", of_names))) if isinstance(of_names, Mapping) else 0
            pattern: Any = rule.get("pattern")
            of_text = states(pattern) if isinstance(pattern, str) else 0
            own = self._own[id(rule)] = (once, each, of_text)
        once, each, of_text = own
        steps = once
        if isinstance(value, str):
            steps += len(value) * of_text if of_text else len(value) // 64
            if rule.get("format") == "regex":
                steps += states(value)
        elif isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            steps += len(members) + (each * sum(map(len, members)) if each else 0)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            steps += len(items)
            if rule.get("uniqueItems") is True:
                steps += size_of(items, most=MOST_STEPS).total * (len(items).bit_length() + 1)
        if steps > MOST_STEPS:
            raise TooMuchWork("its keywords are too expensive")
        return steps

    def _applied(self, rule: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the schemas applied within a schema, each with the value that it is applied to."""
        yield from ((one, value) for one in self._to_itself(rule))
        if isinstance(value, Mapping):
            yield from self._to_members(rule, cast("Mapping[str, Any]", value))
        elif isinstance(value, list):
            yield from _to_items(rule, cast("list[Any]", value))

    def _to_itself(self, rule: Mapping[str, Any]) -> Iterator[Any]:
        if isinstance(reference := rule.get("$ref"), str):
            target = self._references.resolve(reference)
            if target is None:
                raise TooMuchWork("it refers to schemas that are not in it")
            yield target
        for key in _IN_PLACE:
            if isinstance(branches := rule.get(key), list):
                yield from cast("list[Any]", branches)
        yield from (rule[key] for key in _IN_PLACE_ONE if key in rule)

    def _to_members(self, rule: Mapping[str, Any], members: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        for key in _IN_PLACE_MAPS:
            if isinstance(inside := rule.get(key), Mapping):
                yield from ((one, members) for one in cast("Mapping[str, Any]", inside).values())
        if isinstance(properties := rule.get("properties"), Mapping):
            declared = cast("Mapping[str, Any]", properties)
            yield from ((declared[name], value) for name, value in members.items() if name in declared)
        if isinstance(patterned := rule.get("patternProperties"), Mapping):
            # All are counted, whichever of them match a name.
            for one in cast("Mapping[str, Any]", patterned).values():
                yield from ((one, value) for value in members.values())
        if isinstance(others := rule.get("additionalProperties"), Mapping):
            yield from ((others, value) for value in members.values())
        if isinstance(names := rule.get("propertyNames"), Mapping):
            yield from ((names, name) for name in members)


def _to_items(rule: Mapping[str, Any], items: list[Any]) -> Iterator[tuple[Any, Any]]:
    for key in _TO_ITEMS:
        if isinstance(one := rule.get(key), Mapping):
            yield from ((one, item) for item in items)
    for key in ("prefixItems", "items"):
        if isinstance(listed := rule.get(key), list):
            yield from zip(cast("list[Any]", listed), items, strict=False)

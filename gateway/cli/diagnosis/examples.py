"""Make example arguments from a tool's schema: small, plain, and the same every time. Pure.

Values in the schema come first (`default`, `examples`, `const`, `enum`), then the simplest value that fits; objects
get only required properties. No reference is fetched, and recursion ends as soon as the schema allows it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from gateway.core.model.json_values import is_dict, is_list, is_object
from gateway.core.tools.catalogue.faults import resolve

DEEPEST = 12
_LONGEST = 10_000
_TEXTS = (
    "example",
    "a",
    "1",
    "A1",
    "EXAMPLE",
    "Example",
    "example.txt",
    "2026-01-31",
    "12:00",
    "#336699",
    "en-US",
    "10.0.0.1",
)
"""Candidates for a string that has to match a pattern, in the order in which they are tried."""

FORMATS: Mapping[str, str] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/example",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "json-pointer": "/example",
    "regex": "a+",
    "byte": "ZXhhbXBsZQ==",
}
_NAMES: Mapping[str, str] = {
    "url": "https://example.com/",
    "uri": "https://example.com/",
    "email": "someone@example.com",
    "date": "2026-01-31",
    "timezone": "UTC",
    "path": ".",
    "city": "London",
    "language": "en",
}
"""Likely values of properties with these names, for schemas that say only that the value is a string."""


class NoExample(Exception):
    """No arguments can be made; the message names the part of the schema, and the reason."""


def example_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments for a tool with this input schema.

    Raises:
        NoExample: no value can be made for something required.
    """
    made = _Maker(schema).value(schema, "arguments", 0)
    if not is_dict(made):
        raise NoExample("its arguments are not an object")
    return made


class _Maker:
    """Makes values for one schema; `root` is the schema that its references point into."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root

    def value(self, schema: Any, name: str, depth: int) -> Any:
        if depth > DEEPEST:
            raise NoExample(f"{name}: its schema never ends")
        if schema is True:
            return "example"
        if not is_object(schema):
            raise NoExample(f"{name}: nothing fits its schema")
        known = self._merged(schema, name)
        if (said := _suggested(known)) is not _NOTHING:
            return said
        for member in ("oneOf", "anyOf"):
            if isinstance(known.get(member), list) and known[member]:
                rest = {key: value for key, value in known.items() if key != member}
                return self._first_of(known[member], rest, name, depth)
        return self._of_type(_type_of(known), known, name, depth)

    def _first_of(self, options: Sequence[Any], rest: Mapping[str, Any], name: str, depth: int) -> Any:
        """Return a value for the first option that allows one; null only if nothing else fits."""
        failure: NoExample | None = None
        for option in sorted(options, key=_is_null):
            schema = {**rest, **option} if is_object(option) else option
            try:
                return self.value(schema, name, depth + 1)
            except NoExample as error:
                failure = failure or error
        raise failure or NoExample(f"{name}: nothing fits its schema")

    def _merged(self, schema: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return the schema with the contents of its `$ref` and `allOf` merged into it."""
        merged = dict(schema)
        for _ in range(DEEPEST):
            if "$ref" in merged:
                reference = merged.pop("$ref")
                target = resolve(self._root, reference) if isinstance(reference, str) else None
                if not is_object(target):
                    raise NoExample(f"{name}: its $ref cannot be resolved")
                merged = _joined(target, merged)
            elif isinstance(merged.get("allOf"), list):
                for part in cast("list[Any]", merged.pop("allOf")):
                    if is_object(part):
                        merged = _joined(self._merged(part, name), merged)
            else:
                return merged
        raise NoExample(f"{name}: its $ref is circular")

    def _of_type(self, kind: str, schema: Mapping[str, Any], name: str, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, name, depth)
            case "array":
                return self._array(schema, name, depth)
            case "string":
                return _text(schema, name)
            case "integer" | "number":
                return _number(schema, name, whole=kind == "integer")
            case "boolean":
                return False
            case _:
                return None

    def _object(self, schema: Mapping[str, Any], name: str, depth: int) -> dict[str, Any]:
        properties = schema.get("properties")
        known = properties if is_object(properties) else dict[str, Any]()
        required = schema.get("required")
        names = [key for key in required if isinstance(key, str)] if is_list(required) else []
        return {key: self.value(known.get(key, True), key, depth + 1) for key in dict.fromkeys(names)}

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        fewest = schema.get("minItems", 0)
        count = fewest if isinstance(fewest, int) else 0
        if count > 100:
            raise NoExample(f"{name}: it wants {count} items")
        prefix = schema.get("prefixItems")
        first = prefix[:count] if is_list(prefix) else []
        items = schema.get("items", True)
        return [self.value(first[at] if at < len(first) else items, name, depth + 1) for at in range(count)]


_NOTHING = object()


def _suggested(schema: Mapping[str, Any]) -> Any:
    """Return the value that the schema itself gives."""
    for member in ("const", "default"):
        if member in schema:
            return schema[member]
    for member in ("examples", "enum"):
        values = schema.get(member)
        if is_list(values) and values:
            return values[0]
    return schema.get("example", _NOTHING)


def _type_of(schema: Mapping[str, Any]) -> str:
    declared: Any = schema.get("type")
    kinds = [str(kind) for kind in declared] if is_list(declared) else [declared]
    kind = next((one for one in kinds if one not in (None, "null")), None)
    if isinstance(kind, str):
        return kind
    if "null" in kinds:
        return "null"
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "number" if {"minimum", "maximum"} & schema.keys() else "string"


def _text(schema: Mapping[str, Any], name: str) -> str:
    form = schema.get("format")
    likely = FORMATS.get(form) if isinstance(form, str) else None
    pattern = schema.get("pattern")
    candidates = [text for text in (likely, _NAMES.get(name.lower())) if text is not None] + list(_TEXTS)
    if isinstance(pattern, str):
        return _matching(pattern, candidates, name)
    fewest, most = schema.get("minLength", 0), schema.get("maxLength", _LONGEST)
    if not isinstance(fewest, int) or not isinstance(most, int) or fewest > _LONGEST or most < fewest:
        raise NoExample(f"{name}: no text has the required length")
    text = candidates[0]
    return text.ljust(fewest, "x")[: max(most, fewest)]


def _matching(pattern: str, candidates: Sequence[str], name: str) -> str:
    try:
        # The candidates are short, so that a pattern cannot take long on them.
        found = next((text for text in candidates if len(text) < 24 and re.search(pattern, text)), None)
    except re.error:
        found = None
    if found is None:
        raise NoExample(f"{name}: no text is known that matches its pattern")
    return found


def _number(schema: Mapping[str, Any], name: str, *, whole: bool) -> float:
    lowest, highest = _bound(schema, "minimum", -math.inf), _bound(schema, "maximum", math.inf)
    step = _bound(schema, "multipleOf", 1.0) or 1.0
    above, below = _bound(schema, "exclusiveMinimum", -math.inf), _bound(schema, "exclusiveMaximum", math.inf)
    if math.isfinite(lowest) or math.isfinite(above):
        start = max(lowest, above)
        value = math.ceil(start / step) * step
        value += step if value <= above else 0
    elif highest < 1 or below <= 1:
        end = min(highest, below)
        value = math.floor(end / step) * step
        value -= step if value >= below else 0
    else:
        value = step
    if not lowest <= value <= highest or not above < value < below:
        value = (max(lowest, above) + min(highest, below)) / 2
        if whole or not above < value < below:
            raise NoExample(f"{name}: no number is within its bounds")
    return int(value) if whole or value == int(value) else value


def _bound(schema: Mapping[str, Any], member: str, otherwise: float) -> float:
    value = schema.get(member)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def _joined(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two schemas: properties and required names are combined; otherwise `over` takes precedence."""
    joined = {**base, **over}
    for member in ("properties", "$defs"):
        if isinstance(base.get(member), Mapping) and isinstance(over.get(member), Mapping):
            joined[member] = {**base[member], **over[member]}
    if isinstance(base.get("required"), list) and isinstance(over.get("required"), list):
        joined["required"] = [*base["required"], *over["required"]]
    return joined


def _is_null(option: Any) -> bool:
    return is_object(option) and option.get("type") == "null"

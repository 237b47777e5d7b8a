"""Schemas of an OpenAPI document as JSON Schemas that stand alone: references stay, and lead to `$defs`.

So a schema that contains itself stays finite. What is not JSON Schema is translated (`nullable` and the like of OpenAPI
3.0) or left out.
"""

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from gateway.core.model.json_size import size_of
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.upstream.openapi.document import Document

Direction = Literal["in", "out"]
"""Whether a schema is for what an operation is given, or for what it answers."""

_SCHEMA = frozenset(
    {"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else", "contentSchema"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_SCHEMA_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_WORDS = frozenset({"title", "description", "deprecated", "default"})
_DEMANDS = frozenset(
    {"type", "enum", "const", "format", "pattern", "required", "multipleOf", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minContains"}
    | {"maxContains", "minProperties", "maxProperties", "contentEncoding", "contentMediaType", "dependentRequired"}
)
_LOOSE = frozenset({"type", "contentEncoding", "contentMediaType"})
"""The demands that remain of a schema for answers: APIs seldom keep to the others, and clients fail a call for each."""

_UNNAMED = re.compile(r"[^A-Za-z0-9_.-]")


class SchemaWriter:
    """Writes schemas of a document for one tool, and collects the definitions that they refer to."""

    def __init__(self, document: Document, direction: Direction, most_bytes: int) -> None:
        """`most_bytes`: the size of all definitions; those beyond it accept any value."""
        self._document = document
        self._direction: Direction = direction
        self._left = most_bytes
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._waiting: deque[str] = deque()
        self.is_complete = True
        """Whether no definition was left out for its size."""

    def write(self, schema: object) -> Any:
        """Return the JSON Schema for a schema of the document.

        Raises:
            OutsideReference: it refers to another document.
        """
        if not is_object(schema):
            return schema is not False
        if "$ref" in schema:
            return self._reference(schema)
        written = {key: value for key, member in schema.items() if (value := self._member(key, member)) is not None}
        self._without_hidden(schema, written)
        if self._direction == "out" and "type" not in written and "properties" in written:
            written["type"] = "object"
        return self._translated(schema, written)

    def definitions(self) -> dict[str, Any]:
        """Return the definitions that the schemas written so far need, for `$defs`.

        Raises:
            OutsideReference: one of them refers to another document.
        """
        found: dict[str, Any] = {}
        while self._waiting:
            reference = self._waiting.popleft()
            target = self._document.followed({"$ref": reference})
            written = self.write(target) if self._left > 0 else None
            self._left -= size_of(written, most=self._left + 1).total if written is not None else 0
            if written is None or self._left < 0:
                self.is_complete = False
                written = {"description": f"({_last(reference)}, which is too large to be described here)"}
            found[self._names[reference]] = written
        return found

    def _reference(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        reference = schema["$ref"]
        target = self._document.followed(schema)
        if not target or not isinstance(reference, str):
            return {"description": f"({_last(str(reference))}: its definition is missing)"}
        if reference not in self._names:
            self._names[reference] = self._name(_last(reference))
            self._waiting.append(reference)
        beside = {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)}
        return {"$ref": f"#/$defs/{self._names[reference]}", **beside}

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def _member(self, key: str, value: Any) -> Any:
        """Return the value of a keyword; None to leave it out."""
        if key in _SCHEMA:
            if self._direction == "out" and key not in ("items", "additionalProperties", "contentSchema"):
                return None
            if self._direction == "out" and not is_object(value):
                return None
            return self.write(value) if is_object(value) or isinstance(value, bool) else None
        if key in _SCHEMA_LISTS:
            return [self.write(one) for one in value] if is_list(value) and value else None
        if key in _SCHEMA_MAPS:
            if not is_object(value) or (self._direction == "out" and key != "properties"):
                return None
            return {name: self.write(one) for name, one in value.items()}
        if key in _WORDS or (key in _DEMANDS and (self._direction == "in" or key in _LOOSE)):
            return value if _is_sound(key, value) else None
        return None

    def _without_hidden(self, schema: Mapping[str, Any], written: dict[str, Any]) -> None:
        """Remove the properties that are only for the other direction."""
        flag = "readOnly" if self._direction == "in" else "writeOnly"
        properties = as_object(schema.get("properties"))
        hidden = {name for name, one in properties.items() if as_object(one).get(flag) is True}
        if hidden:
            written["properties"] = {name: one for name, one in written["properties"].items() if name not in hidden}
        if hidden and "required" in written:
            written["required"] = [name for name in written["required"] if name not in hidden]

    def _translated(self, schema: Mapping[str, Any], written: dict[str, Any]) -> dict[str, Any]:
        """Translate what OpenAPI 3.0 writes in another way."""
        if self._direction == "out" and "oneOf" in written and "anyOf" not in written:
            written["anyOf"] = written.pop("oneOf")  # the demands that told them apart are left out
        for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if isinstance(written.get(key), bool):
                is_exclusive = written.pop(key)
                if is_exclusive and bound in written:
                    written[key] = written.pop(bound)
        is_nullable = schema.get("nullable") is True or self._direction == "out"
        kind = written.get("type")
        if is_nullable and kind is not None:
            kinds = kind if is_list(kind) else [kind]
            written["type"] = kinds if "null" in kinds else [*kinds, "null"]
            if is_list(written.get("enum")) and None not in written["enum"]:
                written["enum"] = [*written["enum"], None]
        elif is_nullable and self._document.is_3_0 and {"allOf", "anyOf", "oneOf"} & written.keys():
            return {"anyOf": [written, {"type": "null"}]}
        return written


def _last(reference: str) -> str:
    name = _UNNAMED.sub("_", reference.rsplit("/", 1)[-1].replace("~1", "_"))[:64]
    return name or "schema"


def _is_sound(key: str, value: Any) -> bool:
    """Whether a keyword has a value of a type that validators accept: many documents have `required: true`."""
    match key:
        case "required":
            return is_list(value) and all(isinstance(name, str) for name in value)
        case "enum":
            return is_list(value) and bool(value)
        case "type":
            kinds = value if is_list(value) else [value]
            return bool(kinds) and all(kind in _TYPES for kind in kinds)
        case "title" | "description" | "format" | "pattern" | "contentEncoding" | "contentMediaType":
            return isinstance(value, str)
        case "minimum" | "maximum" | "multipleOf":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "exclusiveMinimum" | "exclusiveMaximum":
            return isinstance(value, int | float)
        case "dependentRequired":
            return is_object(value)
        case "uniqueItems" | "deprecated":
            return isinstance(value, bool)
        case "const" | "default":
            return value is not None
        case _:
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})

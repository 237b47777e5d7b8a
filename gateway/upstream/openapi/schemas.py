"""Schemas of an OpenAPI document as JSON Schemas that stand alone: references stay, and lead to `$defs`.

So a schema that contains itself stays finite. What is not JSON Schema is translated (`nullable` and the like of OpenAPI
3.0) or left out.
"""

import re
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from gateway.core.model.json_size import size_of
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.upstream.openapi.document import Document
from gateway.upstream.openapi.operations import free_name

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


class Definition(NamedTuple):
    """A schema of the document that others refer to, as it is written; `references` are those within it."""

    written: Any
    size: int
    references: tuple[str, ...]


class SchemaLibrary:
    """The schemas of a document for one direction. What is referred to is written once for all tools."""

    def __init__(self, document: Document, direction: Direction) -> None:
        self.document = document
        self._direction: Direction = direction
        self._definitions: dict[str, Definition] = {}
        self._names: dict[str, str] = {}
        self._taken: dict[str, int] = {}

    def write(self, schema: object, references: dict[str, None]) -> Any:
        """Return the JSON Schema for a schema of the document, and add what it refers to to `references`.

        Raises:
            OutsideReference: it refers to another document.
        """
        return _Writer(self, self._direction, references).write(schema)

    def definition(self, reference: str) -> Definition:
        """Return what a reference leads to.

        Raises:
            OutsideReference: it refers to another document.
        """
        if (known := self._definitions.get(reference)) is None:
            found: dict[str, None] = {}
            written = self.write(self.document.followed({"$ref": reference}), found)
            known = self._definitions[reference] = Definition(written, size_of(written).total, tuple(found))
        return known

    def name(self, reference: str) -> str:
        """Return the name for what a reference leads to."""
        if (known := self._names.get(reference)) is not None:
            return known
        name = self._names[reference] = free_name(last_part(reference), self._taken)
        return name


class ToolSchema:
    """The schemas of one tool: what has been written of them, and the definitions that they need."""

    def __init__(self, library: SchemaLibrary, most_bytes: int) -> None:
        """`most_bytes`: the size of all definitions; those beyond it accept any value."""
        self._library = library
        self._most_bytes = most_bytes
        self._references: dict[str, None] = {}

    def write(self, schema: object) -> Any:
        """Return the JSON Schema for a schema of the document (`SchemaLibrary.write`)."""
        return self._library.write(schema, self._references)

    def write_inline(self, schema: object) -> Any:
        """Return the JSON Schema for a schema, and if that is a reference, for what it leads to."""
        reference = schema["$ref"] if is_object(schema) and "$ref" in schema else None
        if not isinstance(reference, str):
            return self.write(schema)
        definition = self._library.definition(reference)
        self._references |= dict.fromkeys(definition.references)
        return definition.written

    def definitions(self) -> tuple[dict[str, Any], bool]:
        """Return the definitions that the schemas written so far need, for `$defs`, and whether all are there: those
        next to the tool come first.

        Raises:
            OutsideReference: one of them refers to another document.
        """
        found: dict[str, Any] = {}
        left = self._most_bytes
        waiting = dict(self._references)
        queue = deque(waiting)
        while queue:
            reference = queue.popleft()
            name = self._library.name(reference)
            definition = self._library.definition(reference) if left > 0 else None
            left -= definition.size if definition is not None else 0
            if definition is None or left < 0:
                found[name] = {"description": f"({last_part(reference)}, which is too large to be described here)"}
                left = min(left, 0)
                continue
            found[name] = definition.written
            queue += [one for one in definition.references if one not in waiting]
            waiting |= dict.fromkeys(definition.references)
        return found, left > 0


class _Writer:
    """Writes one schema. `references` is extended by what it refers to."""

    def __init__(self, library: SchemaLibrary, direction: Direction, references: dict[str, None]) -> None:
        self._library = library
        self._document = library.document
        self._direction: Direction = direction
        self._references = references

    def write(self, schema: object) -> Any:
        if not is_object(schema):
            return schema is not False
        if "$ref" in schema:
            return self._reference(schema)
        written = {key: value for key, member in schema.items() if (value := self._member(key, member)) is not None}
        self._without_hidden(schema, written)
        if self._direction == "out" and "type" not in written and "properties" in written:
            written["type"] = "object"
        return self._translated(schema, written)

    def _reference(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        reference = schema["$ref"]
        if not isinstance(reference, str) or not self._document.followed(schema):
            return {"description": f"({last_part(str(reference))}: its definition is missing)"}
        self._references[reference] = None
        beside = {key: schema[key] for key in ("title", "description") if isinstance(schema.get(key), str)}
        return {"$ref": f"#/$defs/{self._library.name(reference)}", **beside}

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


def last_part(reference: str) -> str:
    """Return the last part of a reference, which mostly is a name."""
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
            return bool(kinds) and all(isinstance(kind, str) and kind in _TYPES for kind in kinds)
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

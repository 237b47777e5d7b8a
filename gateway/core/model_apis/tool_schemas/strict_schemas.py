"""Tools' schemas in the subset of JSON Schema that OpenAI's strict mode accepts.

https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas: every object is closed and requires
all its properties, every value has a type, `anyOf` is the only combinator, references lead to definitions at the top
level, objects nest 10 levels deep, and there are at most 5,000 properties. (pydantic-ai 2.68, `profiles/openai.py`,
follows the same list.) A property that the tool does not require may be null; a value that the subset cannot describe
is JSON text; limits that it cannot express go into the description. The server checks its own arguments in any case.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import as_list, as_object, is_list, is_object
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.model_apis.tool_schemas.strict_arguments import (
    Branches,
    Defined,
    Items,
    JsonText,
    Plain,
    Properties,
    Reader,
    Wrapped,
    types_of,
)
from gateway.core.wording import as_json_text, with_limits

MOST_PROPERTIES = 5_000
_DEEPEST = 10
_MOST_VALUES = 1_000
_LONGEST_TEXTS = 120_000
"""Maximum characters of all names of properties and definitions and of all enumerated values together."""
_LONG_LIST, _LONGEST_LIST = 250, 15_000
"""A list of more than 250 values may have this many characters in total."""

_MOST_PARTS = 20_000
"""Maximum parts that are processed, because references may turn a few into many."""

_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_NUMBERS = ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems")
_DESCRIBED = ("minLength", "maxLength", "pattern", "format", "uniqueItems", "minProperties", "maxProperties", "default")
"""Keywords that are added to the description if strict mode does not accept them."""

_TYPED = ("type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const")
_TOP = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")
_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")
_WHOLE = "arguments"
"""The one property of a tool whose arguments are all in one JSON text."""


class StrictTool(NamedTuple):
    """A tool's parameters for strict mode, with a reader that converts the model's arguments to the tool's own.

    `is_strict` is false if the schema is too large for strict mode; then `parameters` are those for other modes.
    """

    parameters: dict[str, Any]
    reader: Reader | None
    is_strict: bool = True

    def arguments(self, written: Mapping[str, Any]) -> Mapping[str, Any]:
        """Convert the arguments for the tool."""
        try:
            return self.reader.read(written) if self.reader is not None else written
        except RecursionError:
            return written


def strict_tool(tool: Mapping[str, Any]) -> StrictTool:
    """Return the parameters of an MCP tool for strict mode."""
    declared = parameters(tool)
    if _is_open(declared, is_root=True):
        properties = {_WHOLE: {"type": "string", "description": as_json_text(compact_json(declared))}}
        return StrictTool(_closed(properties), Wrapped(_WHOLE))
    try:
        written = _Writer(declared).whole()
    except _TooLarge:
        return StrictTool(declared, None, is_strict=False)
    return StrictTool(written.schema, written.reader)


class _TooLarge(Exception):
    """The schema is too large for strict mode."""


class _Written(NamedTuple):
    """A part of a schema, rewritten, and the reader of its values."""

    schema: dict[str, Any]
    reader: Reader

    @property
    def is_text(self) -> bool:
        return isinstance(self.reader, JsonText)


@dataclass
class _Writer:
    """Rewrites one tool's schema; references start at `root`."""

    root: Mapping[str, Any]
    definitions: dict[str, _Written | None] = field(default_factory=dict[str, "_Written | None"])
    """The definitions by reference; None while one is being written."""

    parts: int = 0

    def whole(self) -> _Written:
        """Rewrite the schema, with those of its definitions that are referenced."""
        self.definitions["#"] = None
        written = self._object(self.root, 1, is_root=True)
        self.definitions["#"] = written
        schema = dict(written.schema)
        for reference, definition in self.definitions.items():
            if reference != "#" and definition is not None:
                _, place, name = reference.split("/")
                schema.setdefault(place, {})[_unescaped(name)] = definition.schema
        _check_size(schema)
        return _Written(schema, written.reader)

    def part(self, declared: Any, depth: int) -> _Written:
        """Rewrite any part of the schema; it is inside `depth` objects."""
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise _TooLarge
        node = _unwrapped(as_object(declared))
        if "$ref" in node:
            return self._reference(node, depth)
        if branches := _branches(node):
            return self._union(node, branches, depth)
        if _is(node, "object", "properties"):
            return self._object(_folded(node), depth + 1)
        if _is(node, "array", "items"):
            return self._array(node, depth)
        return _scalar(node) or _text(node)

    def _reference(self, node: Mapping[str, Any], depth: int) -> _Written:
        reference = node["$ref"]
        target = _found(self.root, reference)
        if target is None or depth > _DEEPEST:
            return _text(node)
        if not _TOP.fullmatch(reference):
            # Strict mode follows no reference into the middle of a schema, so the target is written again here.
            beside = {key: each for key, each in node.items() if key != "$ref"}
            return self.part({**target, **beside}, depth + 1)
        if reference not in self.definitions:
            self.definitions[reference] = None
            self.definitions[reference] = self.part(target, 0)
        known = self.definitions[reference]
        if known is not None and known.is_text:
            return _text({**target, **_described(node)})
        named = {"$ref": reference}
        schema = {"anyOf": [named], **_described(node)} if "description" in node else named
        return _Written(schema, Defined(lambda: self._reader(reference)))

    def _reader(self, reference: str) -> Reader:
        definition = self.definitions[reference]
        return definition.reader if definition is not None else JsonText()

    def _union(self, node: Mapping[str, Any], branches: list[Any], depth: int) -> _Written:
        written = [self.part(branch, depth) for branch in branches]
        if any(one.is_text for one in written):
            return _text(node)
        schema = {"anyOf": [one.schema for one in written], **_described(node)}
        return _Written(schema, Branches([one.reader for one in written]))

    def _object(self, node: Mapping[str, Any], depth: int, *, is_root: bool = False) -> _Written:
        if depth > _DEEPEST or _is_open(node, is_root=is_root):
            return _text(node)
        required = [name for name in as_list(node.get("required")) if isinstance(name, str)]
        properties = dict(as_object(node.get("properties")))
        for name in required:
            properties.setdefault(name, {})
        written = {name: self.part(declared, depth) for name, declared in properties.items()}
        optional = frozenset(properties) - frozenset(required)
        schemas = {name: _nullable(one.schema) if name in optional else one.schema for name, one in written.items()}
        reader = Properties({name: one.reader for name, one in written.items()}, optional)
        return _Written({**_closed(schemas), **_described(node)}, reader)

    def _array(self, node: Mapping[str, Any], depth: int) -> _Written:
        if not as_object(node.get("items")) or "prefixItems" in node:
            return _text(node)
        items = self.part(node["items"], depth)
        if items.is_text:
            return _text(node)
        return _Written(
            {"type": "array", "items": items.schema, **_numbers(node), **_described(node)}, Items(items.reader)
        )


def _scalar(node: Mapping[str, Any]) -> _Written | None:
    """Rewrite a schema of values that are neither objects nor arrays; None if it is not one."""
    allowed = [node["const"]] if "const" in node else as_list(node.get("enum")) if "enum" in node else None
    types = _types(node)
    if not types and allowed:
        types = sorted({_type_of(value) for value in allowed})
    if not types or not _SCALARS.issuperset(types) or allowed == []:
        return None
    if any(_type_of(value) not in _SCALARS for value in allowed or ()):
        return None
    kind = types[0] if len(types) == 1 else types
    listed = {} if allowed is None else {"enum": allowed}
    schema = {"type": kind, **listed, **_numbers(node), **_of_text(node), **_described(node)}
    return _Written(schema, Plain(frozenset(types), allowed))


def _text(node: Mapping[str, Any]) -> _Written:
    description = as_json_text(compact_json({key: each for key, each in node.items() if key != "description"}))
    told = f"{node['description']} {description}" if isinstance(node.get("description"), str) else description
    return _Written({"type": "string", "description": told}, JsonText())


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    required = list(properties)
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Allow null in addition to a schema's values: in strict mode, this is how a property is omitted."""
    if isinstance(schema.get("type"), str) and schema["type"] in _SCALARS - {"null"} and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if isinstance(schema.get("type"), list) and "null" in schema["type"] and "enum" not in schema:
        return schema
    null = {"type": "null"}
    if "anyOf" in schema:
        return schema if null in schema["anyOf"] else {**schema, "anyOf": [*schema["anyOf"], null]}
    if "description" in schema:
        inner = {key: each for key, each in schema.items() if key != "description"}
        return {"anyOf": [inner, null], "description": schema["description"]}
    return {"anyOf": [schema, null]}


# -- reading a schema --------------------------------------------------------------------------------------------------


def _is_open(node: Mapping[str, Any], *, is_root: bool = False) -> bool:
    """Whether an object accepts properties of any name, which strict mode does not support.

    An object that names properties, and does not mention others, is taken to have only these.
    """
    others = node.get("additionalProperties")
    if node.get("patternProperties") or (isinstance(others, Mapping) and others):
        return True
    if node.get("properties") or node.get("required"):
        return False
    return others not in (None, False) if is_root else others is not False


def _is(node: Mapping[str, Any], kind: str, keyword: str) -> bool:
    return node.get("type") == kind or (keyword in node and "type" not in node)


def _types(node: Mapping[str, Any]) -> list[str]:
    declared = node.get("type")
    return [str(one) for one in (declared if is_list(declared) else [declared]) if one is not None]


def _unwrapped(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace `allOf` with one schema by that schema: this is how a reference gets a description."""
    every = as_list(node.get("allOf"))
    if len(every) != 1 or "properties" in node:
        return node
    return {**as_object(every[0]), **{key: each for key, each in node.items() if key != "allOf"}}


def _branches(node: Mapping[str, Any]) -> list[Any]:
    """Return the schemas of which a value fits one, each with its type; empty if there is only one."""
    either = [*as_list(node.get("anyOf")), *as_list(node.get("oneOf"))]
    if either and not node.get("properties") and not node.get("allOf"):
        kind = {"type": node["type"]} if "type" in node else {}
        return [
            branch if any(key in as_object(branch) for key in _TYPED) else {**kind, **as_object(branch)}
            for branch in either
        ]
    types = _types(node)
    if len(types) < 2 or _SCALARS.issuperset(types):
        return []
    rest = {key: each for key, each in node.items() if key not in ("type", "description", "default")}
    return [{**rest, "type": kind} if kind not in _SCALARS else {"type": kind} for kind in types]


def _folded(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge the properties of an object's combinators into its own, as at the top of a tool's schema."""
    return parameters({"inputSchema": node}) if any(key in node for key in ("anyOf", "oneOf", "allOf")) else node


def _found(root: Mapping[str, Any], reference: Any) -> Mapping[str, Any] | None:
    """Return the schema that a reference within the same document leads to."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    found: Any = root
    for step in reference.split("/")[1:]:
        items = as_list(found)
        inside = {str(place): each for place, each in enumerate(items)} if items else as_object(found)
        found = inside.get(_unescaped(step))
    return found if is_object(found) else None


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _described(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the description, with the limits that strict mode cannot express."""
    taken = {*_numbers(node), *_of_text(node)}
    given = [key for key in _DESCRIBED if key not in taken and node.get(key) is not None]
    limits = {key: compact_json(node[key]) for key in given}
    description = node.get("description")
    text = with_limits(description if isinstance(description, str) else "", limits)
    return {"description": text} if text else {}


def _numbers(node: Mapping[str, Any]) -> dict[str, Any]:
    return {key: node[key] for key in _NUMBERS if isinstance(node.get(key), int | float) and node[key] is not True}


def _of_text(node: Mapping[str, Any]) -> dict[str, Any]:
    pattern, form = node.get("pattern"), node.get("format")
    taken = {"pattern": pattern} if isinstance(pattern, str) and not any(one in pattern for one in _LOOKAROUND) else {}
    return {**taken, "format": form} if isinstance(form, str) and form in _FORMATS else taken


def _check_size(schema: Mapping[str, Any]) -> None:
    properties = values = texts = 0
    for node in _nodes(schema):
        for place in ("properties", "$defs", "definitions"):
            named = as_object(node.get(place))
            properties += len(named) if place == "properties" else 0
            texts += sum(map(len, named))
        listed = as_list(node.get("enum"))
        values += len(listed)
        length = sum(len(value) for value in listed if isinstance(value, str))
        texts += length
        if len(listed) > _LONG_LIST and length > _LONGEST_LIST:
            raise _TooLarge
    if properties > MOST_PROPERTIES or values > _MOST_VALUES or texts > _LONGEST_TEXTS:
        raise _TooLarge


def _nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema as it was written here, and every schema inside it."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        yield node
        for place in ("properties", "$defs", "definitions"):
            waiting += as_object(node.get(place)).values()
        waiting += as_list(node.get("anyOf"))
        waiting += [as_object(node["items"])] if "items" in node else []


def _type_of(value: Any) -> str:
    return min(types_of(value))

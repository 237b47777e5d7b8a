"""OpenAI's rules for functions in strict mode. Breaking one refuses the whole request, with 400.

https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas, and the API's own error texts, as
reported by users:

- openai/openai-agents-python#1023: "'additionalProperties' is required to be supplied and to be false"
- langchain-ai/langchain#32930: "'required' is required to be supplied and to be an array including every key in
  properties. Missing 'content'"
- can1357/oh-my-pi#206, #209: "'uri' is not a valid format", "'propertyNames' is not permitted"
- camel-ai/camel#3001: "$ref cannot have keywords {'description'}"
- everruns/everruns#984: "object schema missing properties" (in every mode; only strict mode is checked here)
- tidyverse/ellmer#671, openai/openai-node#1176: "6 levels of nesting exceeds limit of 5", "144 parameters exceed the
  limit of 100": the limits of 2024; the current ones are in the guide (openai/openai-java#732, #1001).

The messages about enum values and characters are this module's own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_list, as_object, is_list
from gateway.testing.model_apis.read_request import Conversation, Rule

_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_SCHEMA = frozenset({"type", "title", "description", "enum", "const", "anyOf", "$ref", "$defs", "definitions"})
_OBJECT = frozenset({"properties", "required", "additionalProperties"})
_LIMITS = frozenset({"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_ARRAY = frozenset({"items", "minItems", "maxItems"})
_PERMITTED = _SCHEMA | _OBJECT | _LIMITS | _ARRAY
_REFERENCE = re.compile(r"#|#/(\$defs|definitions)/[^/]+")
_DEEPEST, _MOST_PROPERTIES, _MOST_VALUES, _LONGEST_TEXTS = 10, 5_000, 1_000, 120_000
_LONG_LIST, _LONGEST_LIST = 250, 15_000
"""An enum with more values than the first number may have at most the second number of characters in total."""

Functions = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""Takes a request and returns its functions, each with `name`, `parameters` and `strict`."""


def strict_tools(functions: Functions) -> Rule:
    """Functions with `strict` must have schemas within the subset that strict mode supports."""

    def rule(conversation: Conversation) -> Iterable[str]:
        for function in functions(conversation.request):
            if function.get("strict") is True:
                for fault in schema_faults(as_object(function.get("parameters"))):
                    yield f"Invalid schema for function '{function.get('name')}': {fault}"

    return rule


def schema_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    """Return the faults of a function's parameters in strict mode."""
    if schema.get("type") != "object" or "anyOf" in schema:
        yield "schema must be a JSON Schema of 'type: \"object\"', and must not have 'anyOf' at the top level."
    nodes: list[Mapping[str, Any]] = []
    parts = [("()", schema, 0)]
    for place in ("$defs", "definitions"):
        parts += [(f"('{place}', '{name}')", each, 0) for name, each in as_object(schema.get(place)).items()]
    while parts:
        where, node, depth = parts.pop()
        yield from (f"In context={where}, {fault}" for fault in _node_faults(node, schema))
        inside = depth + ("properties" in node)
        if inside > _DEEPEST:
            yield f"{inside} levels of nesting exceeds limit of {_DEEPEST}."
            return
        nodes.append(node)
        parts += [(f"{where[:-1]}, '{name}')", each, inside) for name, each in _parts(node)]
    yield from _size_faults(nodes)


def _size_faults(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = [name for node in nodes for name in as_object(node.get("properties"))]
    if len(names) > _MOST_PROPERTIES:
        yield f"{len(names)} parameters exceed the limit of {_MOST_PROPERTIES}."
    lists = [as_list(node.get("enum")) for node in nodes]
    values = sum(map(len, lists))
    if values > _MOST_VALUES:
        yield f"{values} enum values exceed the limit of {_MOST_VALUES}."
    defined = [name for node in nodes for place in ("$defs", "definitions") for name in as_object(node.get(place))]
    constants = [node.get("const") for node in nodes]
    texts = _length([*names, *defined, *constants, *(value for listed in lists for value in listed)])
    if texts > _LONGEST_TEXTS:
        yield f"names and values of {texts} characters exceed the limit of {_LONGEST_TEXTS}."
    for listed in lists:
        if len(listed) > _LONG_LIST and _length(listed) > _LONGEST_LIST:
            yield f"an enum of {_length(listed)} characters exceeds the limit of {_LONGEST_LIST}."


def _length(values: Iterable[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))


def _node_faults(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[str]:
    for keyword in sorted(node.keys() - _PERMITTED):
        yield f"'{keyword}' is not permitted."
    if "$ref" in node:
        yield from _reference_faults(node, root)
        return
    kind = node.get("type")
    kinds = {str(one) for one in (kind if is_list(kind) else [kind])}
    if "anyOf" not in node and not (kinds and kinds <= _TYPES):
        yield "schema must have a 'type' key."
    if "object" in kinds:
        yield from _object_faults(node)
    if "array" in kinds and not as_object(node.get("items")):
        yield "array schema missing items."
    if "format" in node and str(node["format"]) not in _FORMATS:
        yield f"'{node['format']}' is not a valid format."


def _reference_faults(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[str]:
    reference = str(node["$ref"])
    if len(node) > 1:
        yield f"$ref cannot have keywords {set(node) - {'$ref'}}."
    found = root
    for step in reference.split("/")[1:]:
        found = as_object(found.get(step.replace("~1", "/").replace("~0", "~")))
    if not (_REFERENCE.fullmatch(reference) and found):
        yield f"reference can only point to definitions defined at the top level of the schema: {reference}"


def _object_faults(node: Mapping[str, Any]) -> Iterator[str]:
    if node.get("additionalProperties") is not False:
        yield "'additionalProperties' is required to be supplied and to be false."
    if "properties" not in node:
        yield "object schema missing properties."
    properties = as_object(node.get("properties"))
    missing = [name for name in properties if name not in as_list(node.get("required"))]
    extra = [name for name in map(str, as_list(node.get("required"))) if name not in properties]
    if missing:
        yield (
            "'required' is required to be supplied and to be an array including every key in properties. "
            f"Missing '{missing[0]}'."
        )
    if extra:
        yield f"'required' is required to be an array of keys in properties. Extra required key '{extra[0]}' supplied."


def _parts(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((name, as_object(each)) for name, each in as_object(node.get("properties")).items())
    yield from ((str(place), as_object(each)) for place, each in enumerate(as_list(node.get("anyOf"))))
    if "items" in node:
        yield "items", as_object(node["items"])

"""Tools as signatures: the name, the parameters with their types, and one line of what it does. Pure.

A signature has what a model needs for a call, in a fraction of the tokens of a schema. It is bounded, whatever a server
declares.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_list, as_object, is_object
from gateway.core.model.texts import cut, visible

_LONGEST_LINE = 200
_LONGEST_NAME = 80
_MOST_VALUES = 8
_MOST_PARAMETERS = 40
_DEEPEST = 3
_MOST_OPTIONS = 4
_ANY = "any"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")


def signature(tool: Mapping[str, Any]) -> str:
    """Return a tool's signature, such as `add(a: number, b?: number)`, and below it what it does."""
    name = _plain(str(tool.get("name")), _LONGEST_NAME * 2)
    line = f"{name}({', '.join(_members(as_object(tool.get('inputSchema')), _DEEPEST))})"
    words = one_line(tool)
    return f"{line}\n  {words}" if words else line


def call_signature(function: str, schema: Mapping[str, Any], output: object, media: Collection[str] = ()) -> str:
    """Return the signature of a function that calls a tool with this input schema, and what it returns if known.

    The parameters named in `media` are shown to take `Media`.
    """
    properties = {name: {"type": "Media"} if name in media else of for name, of in _properties(schema).items()}
    line = f"{function}({', '.join(_members({**schema, 'properties': properties}, _DEEPEST))})"
    return f"{line} -> {_type(output, _DEEPEST)}" if is_object(output) else line


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_object(schema.get("properties"))


def one_line(tool: Mapping[str, Any]) -> str:
    """Return the first sentence of what a tool says that it does; empty if it says nothing."""
    said = str(tool.get("description") or tool.get("title") or "").strip()
    first = _SENTENCE_END.split(said, maxsplit=1)[0] if said else ""
    return _plain(" ".join(first.split()), _LONGEST_LINE)


def words_in(text: str) -> list[str]:
    """Return the words in a name or a text, split at underscores and where letters change case."""
    found = (_PART.findall(word) if word.isascii() else [word] for word in _WORD.findall(text))
    return [part.lower() for parts in found for part in parts]


def parameter_words(schema: object) -> Iterable[str]:
    """Yield the names of a schema's parameters, and what is said of them."""
    for name, declared in list(_properties(as_object(schema)).items())[:_MOST_PARAMETERS]:
        yield name
        yield str(as_object(declared).get("description") or "")[:_LONGEST_LINE]


def _members(schema: Mapping[str, Any], depth: int) -> Sequence[str]:
    properties, required = _properties(schema), as_list(schema.get("required"))
    listed = sorted(properties, key=lambda name: name not in required)
    shown = [
        f"{_plain(name, _LONGEST_NAME)}{'' if name in required else '?'}: {_type(properties[name], depth)}"
        for name in listed[:_MOST_PARAMETERS]
    ]
    return [*shown, f"... {len(listed) - len(shown)} more"] if len(listed) > len(shown) else shown


def _type(schema: object, depth: int) -> str:
    if not is_object(schema):
        return _ANY
    if "const" in schema:
        return _literal(schema["const"])
    if values := as_list(schema.get("enum")):
        more = " | ..." if len(values) > _MOST_VALUES else ""
        return " | ".join(map(_literal, values[:_MOST_VALUES])) + more
    options = as_list(schema.get("anyOf")) or as_list(schema.get("oneOf"))
    if options and depth > 0:
        named = list(dict.fromkeys(_type(option, depth - 1) for option in options[:_MOST_OPTIONS]))
        return " | ".join([*named, *(["..."] if len(options) > _MOST_OPTIONS else [])])
    kind = schema.get("type")
    if kinds := as_list(kind):
        return " | ".join(_plain(str(each), _LONGEST_NAME) for each in kinds[:_MOST_VALUES])
    if kind == "array":
        inner = _type(schema.get("items"), depth - 1) if depth > 0 else _ANY
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object" and schema.get("properties") and depth > 0:
        return f"{{{', '.join(_members(schema, depth - 1))}}}"
    return _plain(kind, _LONGEST_NAME) if isinstance(kind, str) else _ANY


def _literal(value: object) -> str:
    return _plain(json.dumps(value, ensure_ascii=False, default=str), _LONGEST_NAME)


def _plain(text: str, longest: int) -> str:
    return cut(visible(" ".join(text[: longest * 4].split())), longest)

"""The reference of mcp-gateway.toml and of the values in profiles, generated from the schema as Markdown."""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from textwrap import dedent
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from gateway.config.schema import Settings
from gateway.core.model.quantities import parse_bytes, seconds_of, size_text
from gateway.core.profiles.host_profiles import PATHS, value_at
from gateway.core.profiles.profile import Profile

_SIMPLE: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    date: "date",
}


_QUANTITIES: Mapping[Any, str] = {seconds_of: "seconds", parse_bytes: "bytes"}


class Key(NamedTuple):
    """A key of a table, with its type, its default and its meaning as Markdown; what is not there is empty."""

    name: str
    type: str
    default: str
    meaning: str


class Table(NamedTuple):
    """A table of mcp-gateway.toml: its path, empty for the file as a whole, its meaning, and its own keys."""

    path: str
    meaning: str
    keys: tuple[Key, ...]


def describe_keys() -> str:
    """List every table and key of mcp-gateway.toml, with type, default and meaning."""
    return "\n".join(line for table in tables() for line in _as_markdown(table))


def tables() -> Iterator[Table]:
    """Yield every table of mcp-gateway.toml, each before those below it, the file as a whole first."""
    return _tables(Settings, "")


def describe_profile_keys() -> str:
    """List every value that a profile can set, by dotted path, with the value of `passthrough` and its meaning."""
    lines = ["| path | type | in `passthrough` |", "|---|---|---|"]
    plain = Profile(name="passthrough")
    for path in PATHS:
        *tables, leaf = path.split(".")
        table = _model(Profile.model_fields[tables[0]].annotation) if tables else Profile
        field = (table or Profile).model_fields[leaf]
        kind = _quantity([field.annotation, *field.metadata]) or _type(field.annotation)
        lines.append(f"| `{path}` | {kind} | {_toml(value_at(plain, path))} |")
    lines.append("")
    for name, field in Profile.model_fields.items():
        table = _model(field.annotation)
        if table is not None and any(path.startswith(f"{name}.") for path in PATHS):
            lines += [f"**`{name}`** {_documentation(table)}", ""]
        elif name in PATHS and (meaning := _attribute_texts(Profile).get(name)):
            lines += [f"**`{name}`** {meaning}", ""]
    return "\n".join(lines)


def _as_markdown(table: Table) -> Iterator[str]:
    if table.path:
        yield from (f"## `[{table.path}]`", "", table.meaning, "")
    if table.keys:
        yield from ("| key | type | default | meaning |", "|---|---|---|---|")
        yield from (f"| `{key.name}` | {key.type} | {key.default} | {key.meaning} |" for key in table.keys)
        yield ""


def _tables(model: type[BaseModel], path: str) -> Iterator[Table]:
    """Yield the table of `model`'s own keys, then the tables below it."""
    meanings = _attribute_texts(model)
    below: list[tuple[str, type[BaseModel]]] = []
    keys: list[Key] = []
    for name, field in model.model_fields.items():
        place = f"{path.strip('[]')}.{name}" if path else name
        table, named = _table_model(field.annotation), _element_model(field.annotation)
        if table is not None:
            below.append((place, table))
        elif named is not None:
            below.append((f"{place}.<name>" if get_origin(field.annotation) is dict else f"[{place}]", named))
        else:
            kind = _quantity([field.annotation, *field.metadata]) or _type(field.annotation)
            keys.append(Key(name, kind, _default(field, kind), meanings.get(name, "")))
    yield Table(path, _documentation(model), tuple(keys))
    for place, inner in below:
        yield from _tables(inner, place)


def _model(kind: Any) -> type[BaseModel] | None:
    """Return the model of a table, also of one that may be absent."""
    if isinstance(kind, UnionType):
        return next((model for option in get_args(kind) if (model := _model(option)) is not None), None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _table_model(kind: Any) -> type[BaseModel] | None:
    """Return the model of a table, also of one that may be missing."""
    if get_origin(kind) in (Union, UnionType) and type(None) in get_args(kind):
        return next((model for option in get_args(kind) if (model := _model(option)) is not None), None)
    return _model(kind)


def _element_model(kind: Any) -> type[BaseModel] | None:
    """Return the model of the tables in a list or in a table of named ones."""
    if get_origin(kind) not in (dict, tuple):
        return None
    return next((model for argument in get_args(kind) if (model := _model(argument)) is not None), None)


def _quantity(marks: Iterable[Any]) -> str | None:
    """Return `seconds` or `bytes` if an annotation of the type (or of a member of a union) makes it a quantity."""
    for mark in marks:
        if isinstance(mark, BeforeValidator) and mark.func in _QUANTITIES:
            return _QUANTITIES[mark.func]
        if (found := _quantity(get_args(mark))) is not None:
            return found
    return None


def _type(kind: Any) -> str:
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{_quoted(choice)}`" for choice in arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"table of {_type(arguments[1])}" if arguments[1] is not Any else "table"
    options = [argument for argument in arguments if argument is not type(None) and not _is_constraint(argument)]
    return " or ".join(dict.fromkeys(_type(option) for option in options)) if options else "any"


def _is_constraint(argument: Any) -> bool:
    return isinstance(argument, FieldInfo)


def _default(field: FieldInfo, kind: str) -> str:
    if field.is_required():
        return "required"
    if kind == _QUANTITIES[parse_bytes] and isinstance(field.default, int):
        return f"`{size_text(field.default)}`"
    return _toml(field.get_default(call_default_factory=True, validated_data={}))


def _toml(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return f"`{str(value).lower()}`"
        case str():
            return f"`{_quoted(value)}`"
        case int() | float():
            is_long = value >= 10_000 if isinstance(value, int) else value >= 1_000_000
            return f"`{value:_.0f}`" if is_long else f"`{value:g}`"
        case {}:
            return "`{}`" if not value else f"`{value}`"
        case _:
            return "`[" + ", ".join(_quoted(item) for item in value) + "]`"


def _quoted(text: Any) -> str:
    return f'"{text}"'


def _documentation(model: type[BaseModel]) -> str:
    """Return the docstring with each of its paragraphs on one line."""
    paragraphs = inspect.cleandoc(model.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _attribute_texts(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the attributes in the model's source, and in that of the models that it extends."""
    tree = ast.parse(dedent(inspect.getsource(model)))
    definition = tree.body[0]
    above = (base for base in model.__bases__ if issubclass(base, BaseModel) and base is not BaseModel)
    texts = {name: text for base in above for name, text in _attribute_texts(base).items()}
    if isinstance(definition, ast.ClassDef):
        for attribute, text in zip(definition.body, definition.body[1:], strict=False):
            match attribute, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                    texts[name] = re.sub(r"\s+", " ", meaning).strip()
                case _:
                    pass
    return texts

"""A form for the values of a profile, made from the model of profiles, and what was written into it."""

import json
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from gateway.core.profiles.host_profiles import PATHS, value_at
from gateway.core.profiles.profile import Profile
from gateway.core.profiles.profile_words import words_at
from gateway.errors import ProfileError

FIRST = (
    "image.show",
    "image.types",
    "image.max_edge",
    "image.max_bytes",
    "image.max_count",
    "shown",
    "text.max_chars",
    "limits.result_chars",
    "structured.send",
    "document.show",
    "audio.show",
    "link.show",
    "error.media",
    "handles",
    "rescue",
    "order",
)
"""The values that people change most."""


def profile_fields(profile: Profile, parent: Profile | None) -> list[dict[str, Any]]:
    """Return a field for each value, those that people change most first.

    Each has its `path`, `kind` (choice, number, list, json, text), `value` as text, the `choices` of a choice, the
    parent's value in words as `parent_value`, and whether it `is_first`.
    """
    rest = [path for path in PATHS if path not in FIRST]
    return [_field(path, profile, parent) for path in (*FIRST, *rest)]


def _field(path: str, profile: Profile, parent: Profile | None) -> dict[str, Any]:
    kind, choices = _kind(_annotation(path))
    return {
        "path": path,
        "kind": kind,
        "choices": list(choices),
        "value": field_text(value_at(profile, path)),
        "parent_value": None if parent is None else words_at(parent, path),
        "is_first": path in FIRST,
    }


def field_text(value: Any) -> str:
    """Return a value as a form shows it: nothing for no value, a list with commas, a table as JSON."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case float() if value.is_integer():
            return str(int(value))
        case Mapping():
            return json.dumps(value, ensure_ascii=False)
        case tuple() | list():
            return ", ".join(str(one) for one in value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return str(value)


def changed_values(profile: Profile, given: Mapping[str, str]) -> dict[str, Any]:
    """Return what the fields change in the profile, by dotted path; None: as in the profile that it extends.

    Names that are not paths of values are skipped. Raises ProfileError if a table is not JSON.
    """
    return {
        path: _value(path, given[path].strip())
        for path in PATHS
        if path in given and given[path].strip() != field_text(value_at(profile, path))
    }


def _value(path: str, text: str) -> Any:
    kind, choices = _kind(_annotation(path))
    if kind == "list":
        return [one for one in (part.strip() for part in text.split(",")) if one]
    if kind == "text":
        return text
    if not text:
        return None
    if kind == "choice":
        return text == "true" if set(choices) - {""} == {"true", "false"} and text in choices else text
    if kind == "number":
        return _number(text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ProfileError(f"{path}: this is not JSON", remedy='give an object, such as {"name": 1}') from None


def _number(text: str) -> int | str:
    plain = text.replace(",", "").replace("_", "")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) < 16 else text


def _annotation(path: str) -> Any:
    model: type[BaseModel] = Profile
    *tables, leaf = path.split(".")
    for table in tables:
        inner = model.model_fields[table].annotation
        assert isinstance(inner, type)
        assert issubclass(inner, BaseModel)
        model = inner
    return model.model_fields[leaf].annotation


def _kind(annotation: Any) -> tuple[str, Sequence[str]]:
    """Return the kind of a field for a type, with the choices."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _kind(arguments[0])
    if origin in (Union, types.UnionType):
        kind, choices = _kind(next(one for one in arguments if one is not type(None)))
        return kind, ("", *choices) if choices else ()
    if origin is Literal:
        return "choice", arguments
    if annotation is bool:
        return "choice", ("false", "true")
    if annotation in (int, float):
        return "number", ()
    if origin is tuple:
        return "list", ()
    return ("text", ()) if annotation is str else ("json", ())

"""Values of profiles as texts, as forms and command lines take them, by the types of the model of profiles. Pure."""

import json
import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from gateway.core.near_names import which_name
from gateway.core.profiles.host_profiles import PATHS, value_at
from gateway.core.profiles.profile import Profile
from gateway.errors import ProfileError


def value_kind(path: str) -> tuple[str, Sequence[str]]:
    """Return the kind of the value at a dotted path (choice, number, list, json, text), and the choices of a choice."""
    return _kind(_annotation(path))


def value_as_text(value: Any) -> str:
    """Return a value as it is edited: nothing for no value, a list with commas, a table as JSON."""
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
        if path in given and given[path].strip() != value_as_text(value_at(profile, path))
    }


def given_values(pairs: Sequence[str]) -> dict[str, str]:
    """Return texts by dotted path for pairs such as `image.max_edge=1024`.

    Raises:
        ProfileError: one is not such a pair, or there is no such value.
    """
    given: dict[str, str] = {}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals:
            raise ProfileError(f"{pair!r} sets nothing", remedy="give PATH=VALUE, such as image.max_edge=1024")
        if path not in PATHS:
            raise ProfileError(f"no value of profiles is called {path!r}", remedy=which_name(path, PATHS))
        given[path] = text
    return given


def _value(path: str, text: str) -> Any:
    kind, choices = value_kind(path)
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

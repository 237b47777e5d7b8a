"""Validating a document against the schema; errors are worded in terms of the file, not of pydantic."""

from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config.problems import Location, Problem
from gateway.core.near_names import did_you_mean

Model = TypeVar("Model", bound=BaseModel)

NAME_RULE = "a name is letters, digits, - and single _, with a letter or digit at both ends, 40 characters at most"

NAME_RULE_OF_TOKENS = "a name is letters, digits and . _ @ + -, with a letter or digit first, 100 characters at most"

_NAMES: Mapping[Location, tuple[str, str]] = {
    ("upstreams",): ("is not a name for an upstream", NAME_RULE),
    ("toolsets",): ("is not a name for a toolset", NAME_RULE),
    ("access", "tokens"): ("is not a name for a token", NAME_RULE_OF_TOKENS),
    ("access", "issuers"): ("is not a name for an issuer", NAME_RULE_OF_TOKENS),
    ("access", "people"): ("is not a name for a person", NAME_RULE_OF_TOKENS),
}
"""What is wrong with a name in these tables, and the rule."""

_ELSEWHERE: Mapping[str, str] = {
    "mcpServers": "upstreams",
    "servers": "upstreams",
    "serverUrl": "url",
    "httpUrl": "url",
    "type": "transport",
    "disabled": "enabled",
    "directory": "cwd",
    "environment": "env",
    "bearer": "token",
    "password": "token",
}
"""Names in other programs, and the names here."""

_MESSAGES: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "must be text in quotes",
    "path_type": "must be text in quotes",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "tuple_type": 'must be a list, such as ["one", "two"]',
    "date_type": "must be a date, such as 2026-11-20",
    "date_parsing": "must be a date, such as 2026-11-20",
    "date_from_datetime_parsing": "must be a date, such as 2026-11-20",
}


def validate(
    model: type[Model], document: Any, *, renamed: Callable[[Location], Location] = lambda location: location
) -> tuple[Model | None, tuple[Problem, ...]]:
    """Validate the document as `model`, and collect problems; `renamed` gives locations as the author wrote them."""
    try:
        return model.model_validate(document), ()
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        return None, tuple(_problem(model, detail, renamed) for detail in details)


def _problem(model: type[BaseModel], detail: ErrorDetails, renamed: Callable[[Location], Location]) -> Problem:
    location = tuple(detail["loc"])
    if location[-1:] == ("[key]",):
        return Problem(renamed(location[:-1]), *_NAMES.get(location[:-2], _NAMES["upstreams",]))
    if detail["type"] == "extra_forbidden":
        return Problem(renamed(location), "unknown key", _nearest(str(location[-1]), _keys_at(model, location[:-1])))
    return Problem(renamed(location), _message(detail))


def _message(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "literal_error":
            return f"must be {context['expected']}"
        case "greater_than":
            return f"must be more than {context['gt']:g}"
        case "greater_than_equal":
            return f"must be at least {context['ge']:g}"
        case "less_than_equal":
            return f"must be at most {context['le']:g}"
        case "value_error":
            return detail["msg"].removeprefix("Value error, ")
        case kind:
            return _MESSAGES.get(kind) or detail["msg"][:1].lower() + detail["msg"][1:]


def _nearest(key: str, known: Iterable[str]) -> str | None:
    names = list(known)
    if _ELSEWHERE.get(key) in names:
        return f"did you mean {_ELSEWHERE[key]!r}?"
    return did_you_mean(key, names) or (f"known here: {', '.join(names)}" if names else None)


def _keys_at(model: type[BaseModel], location: Location) -> tuple[str, ...]:
    """Return the keys that the table at `location` may have; empty if it is not a table of the schema."""
    kind: Any = model
    for part in location:
        table = _table(kind)
        if table is not None and isinstance(part, str) and part in table.model_fields:
            kind = table.model_fields[part].annotation
        else:
            kind = _element(kind)
    table = _table(kind)
    return tuple(field.alias or name for name, field in table.model_fields.items()) if table is not None else ()


def _table(kind: Any) -> type[BaseModel] | None:
    if get_origin(kind) in (Union, UnionType):
        return next((table for option in get_args(kind) if (table := _table(option)) is not None), None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _element(kind: Any) -> Any:
    """Return the type of the elements of a list or table."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _element(arguments[0])
    if origin in (Union, UnionType):
        return next((_element(option) for option in arguments if option is not type(None)), None)
    if origin is dict:
        return arguments[1]
    return arguments[0] if origin is tuple else None

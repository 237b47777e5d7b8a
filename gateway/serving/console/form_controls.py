"""Controls of forms for single values of a JSON schema, as `schema_form` puts them together. Pure."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.core.fact_words import counted
from gateway.core.model.canonical_json import canonical_json
from gateway.core.model.json_shape import is_deep
from gateway.core.model.json_values import is_list, is_object
from gateway.core.tools.arguments import Parameter
from gateway.serving.console.read_form import encoded, joined
from gateway.telemetry.sanitize import neutral

Field = dict[str, Any]


_MOST_OPTIONS = 500
_MOST_TEXT = 200_000
_LONGEST_WORDS = 4_000
_ONE_LINE = 80
_LARGEST = 10**300
"""Numbers beyond this are given as JSON: a control for numbers would lose them."""


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_EXAMPLES = {
    "date-time": "2026-01-31T12:00:00Z",
    "email": "name@example.org",
    "uri": "https://example.org/",
    "url": "https://example.org/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.org",
    "duration": "PT1H30M",
    "time": "12:00:00Z",
}


_HINTED = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("pattern", "fits {}"),
    ("format", "format {}"),
)


_COUNTED = (
    ("minLength", "at least {}", "character"),
    ("maxLength", "at most {}", "character"),
    ("minItems", "at least {}", "item"),
    ("maxItems", "at most {}", "item"),
    ("minProperties", "at least {}", "member"),
    ("maxProperties", "at most {}", "member"),
)


class Absent:
    """What stands for a value that is not given."""


ABSENT: Final = Absent()
"""No value is given."""


class Place(NamedTuple):
    """A place of the form: its pointer, its path for `content`, its label, and whether a value is required there.

    `trail` are the references that have led here; `fills`: whether defaults are put in.
    """

    pointer: str
    path: tuple[str | None, ...]
    label: str
    required: bool
    depth: int
    trail: tuple[str, ...]
    fills: bool

    def member(self, name: str, *, required: bool) -> "Place":
        return self._replace(
            pointer=joined(self.pointer, name),
            path=(*self.path, name),
            label=name,
            required=required,
            depth=self.depth + 1,
        )

    def row(self, token: str, *, fills: bool) -> "Place":
        return self._replace(
            pointer=f"{self.pointer}/{token}",
            path=(*self.path, None),
            label="",
            required=True,
            depth=self.depth + 1,
            fills=fills,
        )


def initial(schema: Mapping[str, Any], place: Place, value: Any) -> Any:
    """Return the value to begin with: that which is given, or else the only possible one, or the default."""
    if not isinstance(value, Absent) or not place.fills:
        return value
    if place.required and "const" in schema:
        return schema["const"]
    default = schema.get("default")
    if "default" not in schema or is_deep(default, 40):
        return ABSENT
    if not place.required and default in (None, "", [], {}):  # the same as nothing, for which a form has better words
        return ABSENT
    return default if len(as_json_text(default)) <= _MOST_TEXT else ABSENT


class Option(NamedTuple):
    """One of the values that a field may have, and what it is called."""

    value: Any
    words: str


def options_of(schema: Mapping[str, Any]) -> Sequence[Option] | None:
    """Return the values that are possible, if they are listed."""
    if "const" in schema:
        return (Option(schema["const"], _value_words(schema["const"])),)
    listed: Any = schema.get("enum")
    if is_list(listed) and 0 < len(listed) <= _MOST_OPTIONS:
        names: Any = schema.get("enumNames")  # of elicitation, until 2025-11-25
        named: list[Any] = names if is_list(names) and len(names) == len(listed) else listed
        return [Option(value, _value_words(name)) for value, name in zip(listed, named, strict=True)]
    for key in ("oneOf", "anyOf"):  # values with titles
        titled: Any = schema.get(key)
        if is_list(titled) and 0 < len(titled) <= _MOST_OPTIONS and all(_is_titled(one) for one in titled):
            return [Option(one["const"], _value_words(one["title"])) for one in titled]
    return None


def _is_titled(schema: Any) -> bool:
    return is_object(schema) and "const" in schema and isinstance(schema.get("title"), str)


def _value_words(value: Any) -> str:
    words = value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False, default=str)
    return shortened_words(words[:200])


def index_of(options: Sequence[Option], value: Any) -> int | None:
    """Return the place of a value among the options; None if it is not one of them."""
    wanted = canonical_json(value)
    return next((at for at, one in enumerate(options) if canonical_json(one.value) == wanted), None)


def about_field(kind: str, schema: Mapping[str, Any], place: Place, given: bool) -> Field:
    """Return what all fields have: their kind, place, name, description and whether they are given."""
    title, description = schema.get("title"), schema.get("description")
    return {
        "kind": kind,
        "name": "",
        "at": encoded(place.pointer),
        "label": shortened_words(place.label or (title if isinstance(title, str) else "")),
        "title": shortened_words(title) if isinstance(title, str) and _says_more(title, place.label) else "",
        "description": shortened_words(description) if isinstance(description, str) else "",
        "hint": _hint(schema),
        "required": place.required,
        "given": given,
    }


def _says_more(title: str, label: str) -> bool:
    """Whether a title says more than the name: pydantic makes `First Name` of `first_name`."""
    return bool(label) and title.casefold().replace(" ", "_") != label.casefold()


def _hint(schema: Mapping[str, Any]) -> str:
    told: list[str] = []
    for key, words in _HINTED:
        bound = schema.get(key)
        if key == "format" and bound in ("date", "password", "textarea"):
            continue  # the control shows it
        if isinstance(bound, str | int | float) and not isinstance(bound, bool) and bound != "":
            told.append(words.format(shortened_words(str(bound)[:200])))
    for key, words, what in _COUNTED:
        bound = schema.get(key)
        if isinstance(bound, int) and not isinstance(bound, bool) and 0 <= bound < _LARGEST and (bound or "max" in key):
            told.append(words.format(counted(bound, what)))
    if schema.get("uniqueItems") is True:
        told.append("each item once")
    return ", ".join(told)


def shortened_words(text: str) -> str:
    """Return a text of a schema as it may be shown."""
    cut = text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]} …"
    return neutral(cut)


def as_json_text(value: Any) -> str:
    """Return JSON in ASCII: so it comes back from a control of a page as it is, whatever is in it."""
    return json.dumps(value, default=str)


def pick_field(schema: Mapping[str, Any], place: Place, value: Any, options: Sequence[Option]) -> Field | None:
    """Return the field for one of a few values; None if the value that it should have is none of them."""
    at = None if isinstance(value, Absent) else index_of(options, value)
    if at is None and not isinstance(value, Absent):
        return None
    texts = [as_json_text(option.value) for option in options]
    if sum(map(len, texts)) > _MOST_TEXT:
        return None
    return {
        **about_field("pick", schema, place, at is not None),
        "name": f"j:{encoded(place.pointer)}",
        "options": [{"value": text, "words": option.words} for text, option in zip(texts, options, strict=True)],
        "value": None if at is None else texts[at],
    }


def text_field(schema: Mapping[str, Any], place: Place, value: Any, parameter: Parameter | None) -> Field | None:
    """Return the field for a text; None if the value that it should have is not one that fits into a control."""
    text = "" if isinstance(value, Absent) else value
    if not isinstance(text, str) or len(text) > _MOST_TEXT or not _is_plain(text):
        return None
    if text == "" and not isinstance(value, Absent):
        return None  # an empty control says that nothing is given
    shape, most = schema.get("format"), schema.get("maxLength")
    if parameter is not None:
        control = "content"
    elif shape == "password" or schema.get("writeOnly") is True:
        control = "password"
    elif shape == "date" and (not text or _is_date(text)):
        control = "date"
    elif (shape in _EXAMPLES or (isinstance(most, int) and most <= _ONE_LINE)) and shape != "textarea":
        control = "text"
    else:
        control = "area"
    if control != "area" and "\n" in text:
        control = "area"
    return {
        **about_field("text", schema, place, text != ""),
        "name": f"s:{encoded(place.pointer)}",
        "input": control,
        "value": text,
        "example": _EXAMPLES.get(shape, "") if isinstance(shape, str) else _example(schema),
        "accepts": [] if parameter is None else list(parameter.accepts),
    }


def _example(schema: Mapping[str, Any]) -> str:
    examples = schema.get("examples")
    first = examples[0] if is_list(examples) and examples else None
    return shortened_words(first[:100]).replace("\n", " ") if isinstance(first, str) else ""


def _is_plain(text: str) -> bool:
    """Whether a text comes back from a control as it is: without control characters, and nothing in it hides."""
    return neutral(text) == text


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and "01" <= text[5:7] <= "12" and "01" <= text[8:] <= "28"


def number_field(schema: Mapping[str, Any], place: Place, value: Any, *, whole: bool) -> Field | None:
    """Return the field for a number; None if the value that it should have is not one."""
    text = ""
    if not isinstance(value, Absent):
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            return None
        if abs(value) > _LARGEST or not math.isfinite(value):  # no integer is too large for the first
            return None
        text = as_json_text(value)
    return {
        **about_field("number", schema, place, text != ""),
        "name": f"n:{encoded(place.pointer)}",
        "input": "number",
        "value": text,
        "step": "1" if whole else "any",
    }


def json_field(schema: Mapping[str, Any], place: Place, value: Any) -> Field:
    """Return the field for any value, as JSON."""
    value = initial(schema, place, value)
    given = not isinstance(value, Absent)
    return {
        **about_field("json", schema, place, given),
        "name": f"j:{encoded(place.pointer)}",
        "value": json.dumps(value, indent=1, default=str) if given else "",
    }


def more_field(schema: Mapping[str, Any], place: Place, value: Any, beside: bool) -> Field:
    """Return the field for members that the schema does not name, as a JSON object.

    `is_unexpected`: the schema names none at all, and does not say that there may be any.
    """
    extra = schema.get("additionalProperties")
    given = not isinstance(value, Absent)
    unnamed = "" if beside else "leave this empty unless you know of one"
    return {
        **about_field("json", {}, place._replace(required=False), given),
        "name": f"m:{encoded(place.pointer)}",
        "is_unexpected": not beside and extra is None,
        "label": "Further members, as a JSON object" if beside else "Members, as a JSON object",
        "hint": f"each: {shortened_words(as_json_text(extra)[:300])}" if is_object(extra) and extra else unnamed,
        "value": json.dumps(value, indent=1, default=str) if given else "",
    }

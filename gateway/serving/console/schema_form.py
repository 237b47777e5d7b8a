"""Forms for JSON Schemas: every place of a value as a field, with what is given there.

A field is a JSON object with a `kind`:

- `text`, `number`: one value in a control, whose `input` says which (`text`, `area`, `date`, `time`, `password`,
  `content` for arguments that take content; `number` with `step`);
- `pick`: one of `options`, each with its JSON as `value` and its `words`;
- `object`: `fields`, and `more`, a field for members that the schema does not name, or null;
- `array`: `rows`, and the field of a new row, `row`, whose pointers have `mark` in place of the row's number;
- `union`: `branches`, each with its `words` and `field`, of which `chosen` is the number of one, or null;
- `json`: JSON text, for whatever a form cannot express.

All have `name` (of the control), `at` (the place; see `read_form`), `label`, `description`, `hint`, `required`, and
`given`. What is given, but does not fit its place, becomes a `json` field there: so the form of a value gives back the
same value, whatever the schema is. References are followed within the schema only; depth and number are bounded.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.core.model.canonical_json import canonical_json
from gateway.core.model.json_shape import is_deep
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.core.tools.arguments import Parameter
from gateway.core.tools.catalogue.faults import References
from gateway.core.wording import counted
from gateway.serving.console.read_form import encoded, joined, row_token
from gateway.telemetry.sanitize import neutral

Field = dict[str, Any]

MOST_FIELDS = 400
DEEPEST = 8
_MOST_MEMBERS = 150
_MOST_ROWS = 100
_MOST_OPTIONS = 500
_MOST_BRANCHES = 20
_MOST_FILLED_ROWS = 3
_MOST_TEXT = 200_000
_LONGEST_WORDS = 4_000
_ONE_LINE = 80
_LARGEST = 10**300
"""Numbers beyond this are given as JSON: a control for numbers would lose them."""

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
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
_STRUCTURE = frozenset(
    {"type", "properties", "items", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "prefixItems"}
)
"""Members of a schema that say what a value is, rather than what more is wanted of it."""


class _Absent:
    pass


ABSENT: Final = _Absent()
"""No value is given."""


def form_of(schema: Any, value: Any = ABSENT, *, content: Iterable[Parameter] = ()) -> Field:
    """Return the form for a value that fits `schema`, an object as a rule.

    Without a `value`, the form has the schema's defaults; with one it has exactly that. `content` are the parameters
    that take content.
    """
    builder = _Builder(as_object(schema), {parameter.path: parameter for parameter in content})
    place = _Place("", (), "", True, 0, (), isinstance(value, _Absent))
    return builder.field(schema, place, value)


class _Place(NamedTuple):
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

    def member(self, name: str, *, required: bool) -> "_Place":
        return self._replace(
            pointer=joined(self.pointer, name),
            path=(*self.path, name),
            label=name,
            required=required,
            depth=self.depth + 1,
        )

    def row(self, token: str, *, fills: bool) -> "_Place":
        return self._replace(
            pointer=f"{self.pointer}/{token}",
            path=(*self.path, None),
            label="",
            required=True,
            depth=self.depth + 1,
            fills=fills,
        )


class _Builder:
    def __init__(self, root: Mapping[str, Any], content: Mapping[tuple[str | None, ...], Parameter]) -> None:
        self._references = References(root)
        self._content = content
        self._count = 0

    def field(self, schema: Any, place: _Place, value: Any) -> Field:
        """Return the field for a value, or for none, at a place."""
        self._count += 1
        if self._count > MOST_FIELDS or place.depth > DEEPEST:
            return _json_field(as_object(schema), place, value)
        whole, place = self._whole(schema, place)
        if whole is None:
            return _json_field(as_object(schema), place, value)
        value = _initial(whole, place, value)
        built = self._built(whole, place, value)
        return _json_field(whole, place, value) if built is None else built

    def _whole(self, schema: Any, place: _Place) -> tuple[Mapping[str, Any] | None, _Place]:
        """Return a schema with its references and `allOf` put in, without the places that lead back to themselves."""
        whole: Any = schema
        trail = place.trail
        for _ in range(DEEPEST):
            if whole is True:
                return {}, place
            if not is_object(whole):
                return None, place
            reference: Any = whole.get("$ref")
            if isinstance(reference, str):
                if reference in trail:
                    return None, place
                found = self._references.resolve(reference)
                target: Any = {} if found is True else found
                if not is_object(target):
                    return None, place
                trail = (*trail, reference)
                beside = {key: item for key, item in whole.items() if key != "$ref"}
                whole = _merged(target, beside)
            elif is_list(parts := whole.get("allOf")) and len(parts) <= _MOST_BRANCHES:
                beside = {key: item for key, item in whole.items() if key != "allOf"}
                for part in parts:
                    inner, within = self._whole(part, place._replace(trail=trail))
                    if inner is None:
                        return None, place
                    trail = within.trail
                    beside = _merged(inner, beside)
                whole = beside
            else:
                return whole, place._replace(trail=trail)
        return None, place

    def _built(self, schema: Mapping[str, Any], place: _Place, value: Any) -> Field | None:
        """Return the field, or None if a form cannot express the value."""
        options = _options(schema)
        if options is not None:
            return _pick(schema, place, value, options)
        branches = _branches(schema, value, place)
        if len(branches) > 1:
            return self._union(schema, place, value, branches)
        if branches:
            whole, place = self._whole(branches[0], place)
            return None if whole is None else self._built(whole, place, value)
        match _type(schema):
            case "object":
                return self._object(schema, place, value)
            case "array":
                return self._array(schema, place, value)
            case "string":
                return _text(schema, place, value, self._content.get(place.path))
            case "number" | "integer" as kind:
                return _number(schema, place, value, whole=kind == "integer")
            case kind:
                return _pick(schema, place, value, _FIXED[kind]) if kind in _FIXED else None

    def _union(
        self, schema: Mapping[str, Any], place: _Place, value: Any, branches: Sequence[Mapping[str, Any]]
    ) -> Field | None:
        if len(branches) > _MOST_BRANCHES:
            return None
        resolved = [self._whole(branch, place)[0] for branch in branches]
        chosen = None
        if not isinstance(value, _Absent):
            fitting = (at for at, one in enumerate(resolved) if one is not None and self._may_be(one, value, place))
            chosen = next(fitting, None)
            if chosen is None:
                return None
        elif place.required and place.fills:
            chosen = 0
        inside = place._replace(depth=place.depth + 1, required=True)
        built: list[Field] = []
        for at, branch in enumerate(branches):
            given = at == chosen and not isinstance(value, _Absent)
            there = inside if given else inside._replace(fills=True)
            field = self.field(branch, there, value if given else ABSENT)
            built.append({"words": self._branch_words(branch, resolved[at], at), "field": field})
        return {**_about("union", schema, place, chosen is not None), "branches": built, "chosen": chosen}

    def _may_be(self, schema: Mapping[str, Any], value: Any, place: _Place) -> bool:
        """Whether a value looks like one of a branch: by its type, and by members that are fixed."""
        options = _options(schema)
        if options is not None:
            return _index(options, value) is not None
        kinds = _types(schema) or ((_type(schema),) if _type(schema) else ())
        if kinds and not any(_is_of(kind, value) for kind in kinds):
            return False
        if not is_object(value):
            return True
        if any(name not in value for name in _required(schema)):
            return False
        for name, member in as_object(schema.get("properties")).items():
            whole = self._whole(member, place)[0] or {}
            if "const" in whole and name in value and canonical_json(whole["const"]) != canonical_json(value[name]):
                return False
        return True

    def _branch_words(self, branch: Mapping[str, Any], whole: Mapping[str, Any] | None, at: int) -> str:
        schema = whole or branch
        title = schema.get("title")
        if isinstance(title, str) and title.strip():
            return _words(title)
        for name, member in as_object(schema.get("properties")).items():
            const = as_object(member).get("const")
            if isinstance(const, str):
                return _words(f"{name}: {const}")
        if "const" in schema:
            return _words(_json(schema["const"]))
        reference = branch.get("$ref")
        if isinstance(reference, str):
            return _words(reference.rpartition("/")[2])
        kind = _type(schema)
        described = schema.get("description")
        if kind is None and isinstance(described, str) and described.strip():
            return _words(described[:80])
        return kind or f"choice {at + 1}"

    def _object(self, schema: Mapping[str, Any], place: _Place, value: Any) -> Field | None:
        properties, extra = as_object(schema.get("properties")), schema.get("additionalProperties")
        given = not isinstance(value, _Absent)
        if (given and not is_object(value)) or len(properties) > _MOST_MEMBERS:
            return None
        required, inside = _required(schema), place._replace(fills=not given)
        members: Mapping[str, Any] = value if is_object(value) else {}
        unknown = {name: item for name, item in members.items() if name not in properties}
        fields = [
            self.field(one, inside.member(name, required=name in required), members.get(name, ABSENT))
            for name, one in properties.items()
        ]
        open_ended = extra is True or is_object(extra) or (not properties and extra is not False)
        more = None
        if unknown or open_ended:
            more = _more_field(schema, place, unknown or ABSENT, bool(properties))
        return {
            **_about("object", schema, place, given or (place.required and place.fills)),
            "name": f"o:{encoded(place.pointer)}",
            "fields": fields,
            "more": more,
        }

    def _array(self, schema: Mapping[str, Any], place: _Place, value: Any) -> Field | None:
        items: Any = schema.get("items", True)
        given = not isinstance(value, _Absent)
        if "prefixItems" in schema or is_list(items) or (given and not is_list(value)):
            return None
        values: Sequence[Any] = value if is_list(value) else ()
        if len(values) > _MOST_ROWS or (given and not values and not place.required):
            return None
        least = schema.get("minItems")
        empty: Sequence[Any] = ()
        if not given and place.fills and place.required and isinstance(least, int):
            empty = (ABSENT,) * max(0, min(least, _MOST_FILLED_ROWS))
        rows = [
            self.field(items, place.row(row_token(str(at)), fills=place.fills and item is ABSENT), item)
            for at, item in enumerate((*values, *empty))
        ]
        mark = row_token(f"row{place.depth}x")
        row = self.field(items, place.row(mark, fills=True), ABSENT)
        return {
            **_about("array", schema, place, given),
            "name": f"a:{encoded(place.pointer)}" if place.required and (given or place.fills) else "",
            "rows": rows,
            "row": row,
            "mark": mark,
        }


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return both schemas as one, roughly: this draws a form, and does not check anything."""
    both = {**base, **over}
    properties = (as_object(base.get("properties")), as_object(over.get("properties")))
    if any(properties):
        both["properties"] = {**properties[0], **properties[1]}
    required = sorted(_required(base) | _required(over))
    return {**both, "required": required} if required else both


def _required(schema: Mapping[str, Any]) -> frozenset[str]:
    names = schema.get("required")
    return frozenset(name for name in names if isinstance(name, str)) if is_list(names) else frozenset()


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    declared: Any = schema.get("type")
    named: list[Any] = declared if is_list(declared) else [declared]
    return tuple(dict.fromkeys(one for one in named if isinstance(one, str) and one in _TYPES))


def _type(schema: Mapping[str, Any]) -> str | None:
    types = _types(schema)
    if types:
        return types[0]
    if is_object(schema.get("properties")) or "additionalProperties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else None


def _is_of(kind: str | None, value: Any) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "object":
            return is_object(value)
        case "array":
            return is_list(value)
        case _:
            return True


def _branches(schema: Mapping[str, Any], value: Any, place: _Place) -> list[Mapping[str, Any]]:
    """Return what a value may be, if there is a choice. Null is none for a place that may be left empty."""
    branches: list[Mapping[str, Any]] = []
    for key in ("oneOf", "anyOf"):
        listed = schema.get(key)
        if is_list(listed) and any(is_object(one) and one.keys() & _STRUCTURE for one in listed):
            beside = {name: item for name, item in schema.items() if name not in (key, "default", "title", "examples")}
            branches = [_merged(beside, one) for one in listed if is_object(one)]
            break
    types = _types(schema)
    if not branches and len(types) > 1:
        branches = [{**schema, "type": kind} for kind in types]
    if value is not None and not place.required:
        branches = [one for one in branches if one.get("type") != "null"]
    return branches


def _initial(schema: Mapping[str, Any], place: _Place, value: Any) -> Any:
    """Return the value to begin with: that which is given, or else the only possible one, or the default."""
    if not isinstance(value, _Absent) or not place.fills:
        return value
    if place.required and "const" in schema:
        return schema["const"]
    default = schema.get("default")
    if "default" not in schema or is_deep(default, 40):
        return ABSENT
    if not place.required and default in (None, "", [], {}):  # the same as nothing, for which a form has better words
        return ABSENT
    return default if len(_json(default)) <= _MOST_TEXT else ABSENT


class _Option(NamedTuple):
    value: Any
    words: str


_FIXED: Mapping[str | None, tuple[_Option, ...]] = {
    "boolean": (_Option(True, "yes"), _Option(False, "no")),
    "null": (_Option(None, "null"),),
}


def _options(schema: Mapping[str, Any]) -> Sequence[_Option] | None:
    """Return the values that are possible, if they are listed."""
    if "const" in schema:
        return (_Option(schema["const"], _value_words(schema["const"])),)
    listed: Any = schema.get("enum")
    if is_list(listed) and 0 < len(listed) <= _MOST_OPTIONS:
        names: Any = schema.get("enumNames")  # of elicitation, until 2025-11-25
        named: list[Any] = names if is_list(names) and len(names) == len(listed) else listed
        return [_Option(value, _value_words(name)) for value, name in zip(listed, named, strict=True)]
    for key in ("oneOf", "anyOf"):  # values with titles
        titled: Any = schema.get(key)
        if is_list(titled) and 0 < len(titled) <= _MOST_OPTIONS and all(_is_titled(one) for one in titled):
            return [_Option(one["const"], _value_words(one["title"])) for one in titled]
    return None


def _is_titled(schema: Any) -> bool:
    return is_object(schema) and "const" in schema and isinstance(schema.get("title"), str)


def _value_words(value: Any) -> str:
    words = value if isinstance(value, str) and value.strip() else json.dumps(value, ensure_ascii=False, default=str)
    return _words(words[:200])


def _index(options: Sequence[_Option], value: Any) -> int | None:
    wanted = canonical_json(value)
    return next((at for at, one in enumerate(options) if canonical_json(one.value) == wanted), None)


def _about(kind: str, schema: Mapping[str, Any], place: _Place, given: bool) -> Field:
    title, description = schema.get("title"), schema.get("description")
    return {
        "kind": kind,
        "name": "",
        "at": encoded(place.pointer),
        "label": _words(place.label or (title if isinstance(title, str) else "")),
        "title": _words(title) if isinstance(title, str) and _says_more(title, place.label) else "",
        "description": _words(description) if isinstance(description, str) else "",
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
            told.append(words.format(_words(str(bound)[:200])))
    for key, words, what in _COUNTED:
        bound = schema.get(key)
        if isinstance(bound, int) and not isinstance(bound, bool) and 0 <= bound < _LARGEST and (bound or "max" in key):
            told.append(words.format(counted(bound, what)))
    if schema.get("uniqueItems") is True:
        told.append("each item once")
    return ", ".join(told)


def _words(text: str) -> str:
    cut = text if len(text) <= _LONGEST_WORDS else f"{text[:_LONGEST_WORDS]} …"
    return neutral(cut)


def _json(value: Any) -> str:
    """Return JSON in ASCII: so it comes back from a control of a page as it is, whatever is in it."""
    return json.dumps(value, default=str)


def _pick(schema: Mapping[str, Any], place: _Place, value: Any, options: Sequence[_Option]) -> Field | None:
    at = None if isinstance(value, _Absent) else _index(options, value)
    if at is None and not isinstance(value, _Absent):
        return None
    texts = [_json(option.value) for option in options]
    if sum(map(len, texts)) > _MOST_TEXT:
        return None
    return {
        **_about("pick", schema, place, at is not None),
        "name": f"j:{encoded(place.pointer)}",
        "options": [{"value": text, "words": option.words} for text, option in zip(texts, options, strict=True)],
        "value": None if at is None else texts[at],
    }


def _text(schema: Mapping[str, Any], place: _Place, value: Any, parameter: Parameter | None) -> Field | None:
    text = "" if isinstance(value, _Absent) else value
    if not isinstance(text, str) or len(text) > _MOST_TEXT or not _is_plain(text):
        return None
    if text == "" and not isinstance(value, _Absent):
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
        **_about("text", schema, place, text != ""),
        "name": f"s:{encoded(place.pointer)}",
        "input": control,
        "value": text,
        "example": _EXAMPLES.get(shape, "") if isinstance(shape, str) else _example(schema),
        "accepts": [] if parameter is None else list(parameter.accepts),
    }


def _example(schema: Mapping[str, Any]) -> str:
    examples = schema.get("examples")
    first = examples[0] if is_list(examples) and examples else None
    return _words(first[:100]).replace("\n", " ") if isinstance(first, str) else ""


def _is_plain(text: str) -> bool:
    """Whether a text comes back from a control as it is: without control characters, and nothing in it hides."""
    return neutral(text) == text


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and "01" <= text[5:7] <= "12" and "01" <= text[8:] <= "28"


def _number(schema: Mapping[str, Any], place: _Place, value: Any, *, whole: bool) -> Field | None:
    text = ""
    if not isinstance(value, _Absent):
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            return None
        if abs(value) > _LARGEST or not math.isfinite(value):  # no integer is too large for the first
            return None
        text = _json(value)
    return {
        **_about("number", schema, place, text != ""),
        "name": f"n:{encoded(place.pointer)}",
        "input": "number",
        "value": text,
        "step": "1" if whole else "any",
    }


def _json_field(schema: Mapping[str, Any], place: _Place, value: Any) -> Field:
    value = _initial(schema, place, value)
    given = not isinstance(value, _Absent)
    return {
        **_about("json", schema, place, given),
        "name": f"j:{encoded(place.pointer)}",
        "value": json.dumps(value, indent=1, default=str) if given else "",
    }


def _more_field(schema: Mapping[str, Any], place: _Place, value: Any, beside: bool) -> Field:
    extra = schema.get("additionalProperties")
    given = not isinstance(value, _Absent)
    return {
        **_about("json", {}, place._replace(required=False), given),
        "name": f"m:{encoded(place.pointer)}",
        "label": "Further members, as a JSON object" if beside else "Members, as a JSON object",
        "hint": f"each: {_words(_json(extra)[:300])}" if is_object(extra) and extra else "",
        "value": json.dumps(value, indent=1, default=str) if given else "",
    }

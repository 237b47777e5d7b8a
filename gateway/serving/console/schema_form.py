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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.canonical_json import canonical_json
from gateway.core.model.json_values import as_object, is_list, is_object
from gateway.core.tools.arguments import Parameter
from gateway.core.tools.catalogue.faults import References
from gateway.serving.console.form_controls import (
    ABSENT,
    Absent,
    Field,
    Option,
    Place,
    about_field,
    as_json_text,
    index_of,
    initial,
    json_field,
    more_field,
    number_field,
    options_of,
    pick_field,
    shortened_words,
    text_field,
)
from gateway.serving.console.read_form import encoded, row_token

MOST_FIELDS = 400
DEEPEST = 8
_MOST_MEMBERS = 150
_MOST_ROWS = 100
_MOST_BRANCHES = 20
_MOST_FILLED_ROWS = 3
_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
_STRUCTURE = frozenset(
    {"type", "properties", "items", "enum", "const", "$ref", "anyOf", "oneOf", "allOf", "prefixItems"}
)
"""Members of a schema that say what a value is, rather than what more is wanted of it."""


def form_of(schema: Any, value: Any = ABSENT, *, content: Iterable[Parameter] = ()) -> Field:
    """Return the form for a value that fits `schema`, an object as a rule.

    Without a `value`, the form has the schema's defaults; with one it has exactly that. `content` are the parameters
    that take content.
    """
    builder = _Builder(as_object(schema), {parameter.path: parameter for parameter in content})
    place = Place("", (), "", True, 0, (), isinstance(value, Absent))
    return builder.field(schema, place, value)


class _Builder:
    def __init__(self, root: Mapping[str, Any], content: Mapping[tuple[str | None, ...], Parameter]) -> None:
        self._references = References(root)
        self._content = content
        self._count = 0

    def field(self, schema: Any, place: Place, value: Any) -> Field:
        """Return the field for a value, or for none, at a place."""
        self._count += 1
        if self._count > MOST_FIELDS or place.depth > DEEPEST:
            return json_field(as_object(schema), place, value)
        whole, place = self._whole(schema, place)
        if whole is None:
            return json_field(as_object(schema), place, value)
        value = initial(whole, place, value)
        built = self._built(whole, place, value)
        return json_field(whole, place, value) if built is None else built

    def _whole(self, schema: Any, place: Place) -> tuple[Mapping[str, Any] | None, Place]:
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

    def _built(self, schema: Mapping[str, Any], place: Place, value: Any) -> Field | None:
        """Return the field, or None if a form cannot express the value."""
        options = options_of(schema)
        if options is not None:
            return pick_field(schema, place, value, options)
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
                return text_field(schema, place, value, self._content.get(place.path))
            case "number" | "integer" as kind:
                return number_field(schema, place, value, whole=kind == "integer")
            case kind:
                return pick_field(schema, place, value, _FIXED[kind]) if kind in _FIXED else None

    def _union(
        self, schema: Mapping[str, Any], place: Place, value: Any, branches: Sequence[Mapping[str, Any]]
    ) -> Field | None:
        if len(branches) > _MOST_BRANCHES:
            return None
        resolved = [self._whole(branch, place)[0] for branch in branches]
        chosen = None
        if not isinstance(value, Absent):
            fitting = (at for at, one in enumerate(resolved) if one is not None and self._may_be(one, value, place))
            chosen = next(fitting, None)
            if chosen is None:
                return None
        elif place.required and place.fills:
            chosen = 0
        inside = place._replace(depth=place.depth + 1, required=True)
        built: list[Field] = []
        for at, branch in enumerate(branches):
            given = at == chosen and not isinstance(value, Absent)
            there = inside if given else inside._replace(fills=True)
            field = self.field(branch, there, value if given else ABSENT)
            built.append({"words": self._branch_words(branch, resolved[at], at), "field": field})
        return {**about_field("union", schema, place, chosen is not None), "branches": built, "chosen": chosen}

    def _may_be(self, schema: Mapping[str, Any], value: Any, place: Place) -> bool:
        """Whether a value looks like one of a branch: by its type, and by members that are fixed."""
        options = options_of(schema)
        if options is not None:
            return index_of(options, value) is not None
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
            return shortened_words(title)
        for name, member in as_object(schema.get("properties")).items():
            const = as_object(member).get("const")
            if isinstance(const, str):
                return shortened_words(f"{name}: {const}")
        if "const" in schema:
            return shortened_words(as_json_text(schema["const"]))
        reference = branch.get("$ref")
        if isinstance(reference, str):
            return shortened_words(reference.rpartition("/")[2])
        kind = _type(schema)
        described = schema.get("description")
        if kind is None and isinstance(described, str) and described.strip():
            return shortened_words(described[:80])
        return kind or f"choice {at + 1}"

    def _object(self, schema: Mapping[str, Any], place: Place, value: Any) -> Field | None:
        properties, extra = as_object(schema.get("properties")), schema.get("additionalProperties")
        given = not isinstance(value, Absent)
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
            more = more_field(schema, place, unknown or ABSENT, bool(properties))
        return {
            **about_field("object", schema, place, given or (place.required and place.fills)),
            "name": f"o:{encoded(place.pointer)}",
            "fields": fields,
            "more": more,
        }

    def _array(self, schema: Mapping[str, Any], place: Place, value: Any) -> Field | None:
        items: Any = schema.get("items", True)
        given = not isinstance(value, Absent)
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
            **about_field("array", schema, place, given),
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


def _branches(schema: Mapping[str, Any], value: Any, place: Place) -> list[Mapping[str, Any]]:
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


_FIXED: Mapping[str | None, tuple[Option, ...]] = {
    "boolean": (Option(True, "yes"), Option(False, "no")),
    "null": (Option(None, "null"),),
}

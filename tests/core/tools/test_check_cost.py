"""The work of a check is counted before it is begun: linear in what is counted, whatever a schema multiplies."""

import json
import sys
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.profiles.profile import ToolRules
from gateway.core.tools.arguments import PossibleForms, find_parameters
from gateway.core.tools.catalogue.check_cost import MOST_STEPS, TooMuchWork, check_compilable, check_steps
from gateway.core.tools.catalogue.compile_schema import compile_schema
from gateway.core.tools.catalogue.faults import FaultMemo, faults, resolve
from gateway.core.tools.catalogue.object_root import with_object_root
from gateway.core.tools.catalogue.patterns import compiled_states, states
from gateway.core.tools.catalogue.refs import inlined, without_broken_refs
from gateway.core.tools.catalogue.schemas import shown_to


def lines_run(function, *args) -> int:
    """How many lines of Python run in a call: work that is the same on every machine."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*args)
    except TooMuchWork:
        pass
    finally:
        sys.settrace(before)
    return count


def doubling(size: int, member: str = "allOf") -> dict[str, Any]:
    named = {f"d{n}": {member: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(size)}
    return {"type": "object", "allOf": [{"$ref": "#/$defs/d0"}], "$defs": {**named, f"d{size}": {"required": ["x"]}}}


def broad(size: int) -> dict[str, Any]:
    named = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * size} for n in range(8)}
    return {"type": "object", "anyOf": [{"$ref": "#/$defs/d0"}], "$defs": {**named, "d8": {"required": ["x"]}}}


def anchors(size: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{n}": {"$ref": "#x"} for n in range(size)}}


def chain(size: int) -> dict[str, Any]:
    named = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(size)}
    start = {f"p{n}": {"$ref": "#/$defs/d0"} for n in range(size)}
    return {"type": "object", "properties": start, "$defs": {**named, f"d{size}": {}}}


def alternatives(size: int) -> dict[str, Any]:
    return {"type": "object", "oneOf": [{"properties": {f"p{n}": {}, "kind": {"const": n}}} for n in range(size)]}


def repeated(size: int) -> dict[str, Any]:
    """A long definition, named often."""
    named = {f"p{n}": {"$ref": "#/$defs/long"} for n in range(size)}
    return {"type": "object", "properties": named, "$defs": {"long": {"description": "x" * 100 * size}}}


def recursive(_: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}


SHAPES = (doubling, broad, anchors, chain, alternatives, repeated, recursive)
STEPS = {
    "faults": faults,
    "broken references": without_broken_refs,
    "inlined": inlined,
    "merged": with_object_root,
    "shown": lambda schema: shown_to(schema, ToolRules(refs="inline", root="object", schema_max_bytes=4_000)),
    "handles": lambda schema: find_parameters({"inputSchema": schema}, {}, PossibleForms(handles=True)),
    "judged": check_compilable,
    "counted": lambda schema: check_steps(schema, {"x": {"x": {"x": {}}}}),
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("step", STEPS)
def test_what_is_done_to_a_schema_is_linear_in_its_size_or_bounded(shape, step):
    small, large = (lines_run(STEPS[step], shape(size)) for size in (12, 48))
    assert large < 16 * max(small, 2_000) or large < 1_000_000
    assert lines_run(STEPS[step], shape(400)) < 4_000_000


def test_references_by_anchor_are_looked_up_in_an_index():
    few, many = lines_run(faults, anchors(200)), lines_run(faults, anchors(1_600))
    assert many < 12 * few


def test_faults_of_a_schema_are_found_once_for_all_profiles():
    memo, schema = FaultMemo(), anchors(50)
    first = memo(schema)
    assert [fault.kind for fault in first] == ["dangling"] * 50
    assert memo(schema) is first
    assert lines_run(memo, schema) < 10


def test_of_two_subschemas_with_one_anchor_the_first_counts():
    root = {"$defs": {"a": {"$anchor": "x", "title": "first"}, "b": {"$anchor": "x"}}}
    assert resolve(root, "#x")["title"] == "first"
    assert resolve(root, "#y") is None
    assert resolve({"items": [{}]}, "#/items/" + "9" * 5_000) is None


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (doubling(30), "too often"),
        (chain(200), "references is too long"),
        ({"$defs": {"x": {"$id": "https://example.com/x"}}}, "cannot be counted"),
        ({"allOf": [{"$dynamicRef": "#x"}]}, "cannot be counted"),
        ({"properties": {f"p{n}": {"pattern": "a"} for n in range(101)}}, "too many patterns"),
        ({"description": "x" * 2_000_001}, "too large"),
        ({"properties": {f"p{n}": {} for n in range(5_001)}}, "too deeply nested, or too large"),
    ],
)
def test_schemas_that_nothing_is_checked_against(schema, why):
    with pytest.raises(TooMuchWork, match=why):
        check_compilable({"type": "object", **schema})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(60), {}),
        (doubling(60, "anyOf"), {}),
        ({"$ref": "#"}, {}),
        ({"$ref": "https://example.com/x.json"}, {}),
        ({"pattern": "[ab]*a[ab]{1000}c"}, "ab" * 10_000),
        ({"format": "regex"}, "(a{1000}){1000}" * 3),
        ({"items": {"enum": ["x" * 1_000] * 1_000}}, ["y"] * 100),
        ({"items": {}}, [0.5] * 3_000_000),
    ],
)
def test_checks_that_are_not_begun(schema, value):
    with pytest.raises(TooMuchWork):
        check_steps(schema, value)


def test_a_schema_that_leads_back_to_itself_is_counted_along_the_value():
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    check_compilable(tree)
    few = check_steps(tree, {"children": [{}] * 3})
    value: Any = {}
    for _ in range(30):
        value = {"children": [value, {}]}
    assert few < check_steps(tree, value) < 100 * few
    nested: Any = {}
    for _ in range(30):
        nested = {"x": nested}
    with pytest.raises(TooMuchWork):
        check_steps(recursive(0), nested)


def test_ordinary_schemas_and_arguments_are_far_below_the_limit():
    row = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[a-z]{1,64}$"}}, "required": ["a"]}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}}
    check_compilable(schema)
    assert check_steps(schema, {"rows": [{"a": "x" * 50}] * 100}) < MOST_STEPS / 2


@pytest.mark.parametrize(
    ("pattern", "at_least", "at_most"),
    [
        ("^abc$", 5, 6),
        ("^[a-z0-9_-]{1,64}$", 64, 70),
        ("[^/]{10}", 200, 210),
        ("(a{10}){10}", 100, 130),
        ("((a{1,10}){10}b){3,}", 300, 400),
        ("\\d{3}-\\d{4}", 8, 9),
        ("\\pL{50}", 1_000, 1_010),
        ("\\p{L}{50}", 1_000, 1_010),
        ("\\P{Greek}{50}", 1_000, 1_010),
        ("\\W{50}", 1_000, 1_010),
        ("\\s{50}", 1_000, 1_010),
        ("[\\x{100}-\\x{10ffff}]{50}", 1_000, 1_010),
        ("[", 1, 25),
        ("(", 1, 3),
        (")))", 1, 3),
        ("x" * 20_000, 20_000, 1_000_000),
    ],
)
def test_the_states_of_a_pattern(pattern, at_least, at_most):
    assert at_least <= states(pattern) <= at_most


@given(st.text(alphabet="ap(){}[]\\*+?|^$.,0123456789", max_size=60))
def test_any_text_has_states(pattern):
    assert compiled_states(pattern) >= states(pattern) >= 1


@pytest.mark.parametrize(
    ("pattern", "at_least", "at_most"),
    [
        ("\\pL{10}", 20, 30),
        ("[\\p{L}\\p{N}]{10}", 20, 30),
        ("[^\\PL]{10}", 20, 30),
        ("(\\p{Lu}|x){10}", 20, 30),
        ("\\s{90}", 50, 60),
        ("(?x)\\pL {2}", 0, 0),
        ("\\W{90}", 50, 60),
        ("^[a-z]{1,64}$", 100, 100),
    ],
)
def test_as_many_patterns_are_compiled_as_can_be_at_once(pattern, at_least, at_most):
    """Each is small enough by itself; all of them would take seconds, in which nothing else can run."""
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string", "pattern": pattern} for n in range(100)}}
    checked = compile_schema(schema)
    kept = [name for name, rule in checked.schema["properties"].items() if "pattern" in rule]
    assert at_least <= len(kept) <= at_most
    assert kept == [f"p{n}" for n in range(len(kept))], "the first ones"


NAMES = st.sampled_from(["x", "y"])
SCHEMAS = st.recursive(
    st.sampled_from([{}, {"type": "string"}, {"required": ["x"]}, {"$ref": "#"}, {"$ref": "#/$defs/a"}, True, False]),
    lambda inner: st.one_of(
        st.builds(lambda name, one: {"properties": {name: one}}, NAMES, inner),
        st.builds(lambda one, other: {"allOf": [one, other]}, inner, inner),
        st.builds(lambda one, other: {"anyOf": [one, other]}, inner, inner),
        st.builds(lambda one: {"additionalProperties": one}, inner),
        st.builds(lambda one: {"not": one}, inner),
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.sampled_from(["a", 1, None]), lambda inner: st.dictionaries(NAMES, inner, max_size=2), max_leaves=6
)


@settings(max_examples=300)
@given(SCHEMAS, SCHEMAS, VALUES)
def test_what_is_counted_is_never_less_than_the_mistakes_that_are_found(schema, named, value):
    whole = {"allOf": [schema], "$defs": {"a": named}}
    try:
        steps = check_steps(whole, value)
        check_compilable(whole)
    except TooMuchWork:
        return
    assert len(list(jsonschema_rs.validator_for(whole).iter_errors(value))) <= steps


def test_what_inlining_would_fill_is_bounded():
    for shape in SHAPES:
        shown = shown_to(shape(300), ToolRules(refs="inline"))
        assert len(json.dumps(shown.schema)) < 2_000_000

"""Input schemas as hosts take them: references put in place, alternatives merged, bytes saved; never too strict."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.model.json_size import wire_bytes
from gateway.core.profiles.profile import Profile, ToolRules
from gateway.core.tools.catalogue import OWN, Catalogue, build
from gateway.core.tools.catalogue.repair import repaired, unusable, withheld
from gateway.core.tools.catalogue.schemas import shown_to, with_lost_words

INLINE = ToolRules(refs="inline")
OBJECT = ToolRules(root="object")


def schema(**members: Any) -> dict[str, Any]:
    return {"type": "object", **members}


def listed(tool: dict[str, Any], **rules: Any) -> Catalogue:
    return build({"a": [{"name": "draw", **tool}]}, {}, "always", Profile(name="host", tools=ToolRules(**rules)))


def refs_in(value: Any) -> bool:
    return '"$ref"' in json.dumps(value)


# -- references ---------------------------------------------


def test_a_schema_that_a_host_takes_as_it_is_stays_the_very_same_object():
    original = schema(properties={"a": {"$ref": "#/$defs/x"}}, anyOf=[{"required": ["a"]}])
    assert shown_to(original, ToolRules(schema_max_bytes=1_000)).schema is original


def test_a_reference_is_replaced_by_what_it_leads_to_and_the_definitions_go():
    original = schema(
        properties={"at": {"$ref": "#/$defs/point", "description": "the middle"}, "$ref": {"type": "string"}},
        **{"$defs": {"point": schema(properties={"x": {"$ref": "#/$defs/n"}}), "n": {"type": "number"}}},
    )
    shown = shown_to(original, INLINE)
    assert shown.schema == schema(
        properties={
            "at": schema(properties={"x": {"type": "number"}}, description="the middle"),
            "$ref": {"type": "string"},
        }
    )
    assert not shown.is_looser
    assert shown.changes


def test_what_a_reference_demands_beside_it_is_not_lost():
    original = schema(properties={"a": {"$ref": "#/$defs/n", "minimum": 3}}, **{"$defs": {"n": {"minimum": 1}}})
    assert shown_to(original, INLINE).schema["properties"]["a"] == {"minimum": 3, "allOf": [{"minimum": 1}]}


def test_a_definition_that_leads_back_to_itself_becomes_an_object_that_says_so():
    node = schema(properties={"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}, description="a node")
    shown = shown_to(schema(properties={"tree": {"$ref": "#/$defs/Node"}}, **{"$defs": {"Node": node}}), INLINE)
    inner = shown.schema["properties"]["tree"]["properties"]["children"]["items"]
    assert inner == {"type": "object", "description": "a node (Node, in the same form as above)"}
    assert shown.is_looser


@pytest.mark.parametrize("reference", ["https://evil.example/x.json", "#/$defs/none", "file:///etc/passwd"])
def test_what_leads_elsewhere_or_nowhere_is_never_fetched(reference: str):
    shown = shown_to(schema(properties={"a": {"$ref": reference, "title": "A"}}), INLINE)
    assert shown.is_looser
    assert not refs_in(shown.schema)
    assert "its definition is missing" in shown.schema["properties"]["a"]["description"]


def test_definitions_that_double_one_another_end():
    doubling = {
        f"d{level}": schema(properties={side: {"$ref": f"#/$defs/d{level + 1}"} for side in "lr"})
        for level in range(30)
    }
    shown = shown_to(schema(properties={"a": {"$ref": "#/$defs/d0"}}, **{"$defs": doubling}), INLINE)
    assert not refs_in(shown.schema)
    assert wire_bytes(shown.schema) < 100_000


def test_definitions_that_would_fill_too_much_leave_names_and_types():
    long = {"type": "string", "description": "x" * 50_000}
    named = {f"p{n}": {"$ref": "#/$defs/long"} for n in range(100)}
    shown = shown_to(schema(properties={**named, "size": {"type": "number"}}, **{"$defs": {"long": long}}), INLINE)
    assert shown.schema["properties"]["size"] == {"type": "number"}
    assert wire_bytes(shown.schema) < 20_000
    assert shown.is_looser
    assert shown.changes == ("inputSchema would be too large with its references replaced: names and types kept",)


def test_a_tool_whose_arguments_cannot_be_checked_is_offered_and_said():
    named = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    whole = schema(allOf=[{"$ref": "#/$defs/d0"}], **{"$defs": {**named, "d60": {"required": ["x"]}}})
    found = listed({"inputSchema": whole}, refs="inline", root="object")
    assert [tool["name"] for tool in found.tools] == ["a__draw"]
    assert not found.originals
    assert "its arguments are not checked against its inputSchema" in found.problems[0].text


def test_escaped_names_of_definitions_are_found():
    original = schema(properties={"a": {"$ref": "#/$defs/Box%5Bint%5D"}}, **{"$defs": {"Box[int]": {"const": 1}}})
    assert shown_to(original, INLINE).schema["properties"]["a"] == {"const": 1}


# -- alternatives at the root ---------------------------------------------


def test_alternatives_become_one_object_with_what_all_demand_and_the_rule_in_words():
    circle = schema(properties={"kind": {"const": "circle"}, "r": {"type": "number"}}, required=["kind", "r"])
    box = schema(properties={"kind": {"const": "box"}, "w": {"type": "number"}}, required=["kind", "w"])
    shown = shown_to(schema(oneOf=[circle, {"$ref": "#/$defs/box"}], **{"$defs": {"box": box}}), OBJECT)
    assert shown.schema["properties"] == {
        "kind": {"enum": ["circle", "box"]},
        "r": {"type": "number"},
        "w": {"type": "number"},
    }
    assert shown.schema["required"] == ["kind"]
    assert not {"oneOf", "anyOf", "allOf"} & set(shown.schema)
    assert shown.sentences == ('Exactly one of these must be given: kind "circle" and r; kind "box" and w.',)
    assert shown.is_looser


def test_what_holds_together_is_united_and_nothing_has_to_be_told():
    shown = shown_to(
        schema(
            properties={"a": {"type": "string"}},
            required=["a"],
            allOf=[{"properties": {"b": {"type": "string"}}, "required": ["b"]}],
        ),
        OBJECT,
    )
    assert shown.schema == schema(properties={"a": {"type": "string"}, "b": {"type": "string"}}, required=["a", "b"])
    assert (shown.sentences, shown.is_looser) == ((), False)


def test_different_schemas_of_one_property_are_alternatives_of_that_property():
    branches = [{"properties": {"a": {"type": kind}}} for kind in ("string", "number", "string")]
    assert shown_to(schema(anyOf=branches), OBJECT).schema["properties"]["a"] == {
        "anyOf": [{"type": "string"}, {"type": "number"}]
    }


def test_what_may_not_be_given_together_is_told():
    shown = shown_to(schema(properties={"a": True, "b": True}, **{"not": {"required": ["a", "b"]}}), OBJECT)
    assert "not" not in shown.schema
    assert shown.sentences == ("Do not give all of these together: a, b.",)


# -- bytes ---------------------------------------------


def wordy(count: int = 20) -> dict[str, Any]:
    inner = schema(properties={"deep": {"type": "string", "description": "inner words " * 60}})
    return schema(
        properties={
            f"p{at}": {**inner, "title": "P", "examples": [{"deep": "x" * 50}], "description": "outer words " * 20}
            for at in range(count)
        },
        required=["p0"],
    )


def test_a_schema_too_large_loses_inner_words_first():
    original = wordy()
    shown = shown_to(original, ToolRules(schema_max_bytes=wire_bytes(original) - 5_000))
    assert wire_bytes(shown.schema) <= wire_bytes(original) - 5_000
    first = shown.schema["properties"]["p0"]
    assert first["description"] == original["properties"]["p0"]["description"]
    assert len(first["properties"]["deep"]["description"]) <= 200
    assert not shown.is_looser


def test_then_the_words_about_the_details_and_never_a_rule():
    original = wordy()
    shown = shown_to(original, ToolRules(schema_max_bytes=3_500))
    assert wire_bytes(shown.schema) <= 3_500
    assert "examples" not in json.dumps(shown.schema)
    assert shown.schema["properties"]["p7"]["properties"]["deep"]["type"] == "string"
    assert not shown.is_looser


@pytest.mark.parametrize(("limit", "names_in_the_schema"), [(700, True), (60, False)])
def test_at_last_the_names_alone_are_left_and_the_rest_is_checked_when_the_tool_is_called(limit, names_in_the_schema):
    shown = shown_to(wordy(), ToolRules(schema_max_bytes=limit))
    assert wire_bytes(shown.schema) <= limit
    assert shown.is_looser
    assert ("p19" in shown.schema.get("properties", {})) is names_in_the_schema
    assert ("p19" in shown.sentences[0]) is not names_in_the_schema


def test_a_schema_nested_without_end_is_shown_by_its_names():
    nested: dict[str, Any] = {"type": "object", "properties": {"bottom": {}}}
    for _ in range(200):
        nested = {"type": "object", "properties": {"deeper": nested}}
    shown = shown_to(nested, ToolRules(refs="inline", root="object", schema_max_bytes=16_384))
    assert shown.schema == schema(properties={"deeper": {"type": "object"}})
    assert shown.is_looser


# -- laws ---------------------------------------------

names = st.sampled_from("abc")
plain = st.fixed_dictionaries({}, optional={"type": st.sampled_from(["string", "integer", "object"])})
leaf = st.one_of(plain, st.builds(lambda name: {"$ref": f"#/$defs/{name}"}, names))
branch = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.dictionaries(names, leaf, max_size=2),
        "required": st.lists(names, max_size=2, unique=True),
    },
)
schemas = st.fixed_dictionaries(
    {"type": st.just("object"), "$defs": st.fixed_dictionaries(dict.fromkeys("abc", st.one_of(plain, branch)))},
    optional={
        "properties": st.dictionaries(names, leaf, max_size=3),
        "anyOf": st.lists(branch, min_size=1, max_size=3),
        "allOf": st.lists(branch, min_size=1, max_size=2),
    },
)
values = st.one_of(st.just("s"), st.just(1), st.just({}), st.fixed_dictionaries({}, optional={"a": st.just(1)}))
arguments = st.dictionaries(names, values, max_size=3)


@given(schemas, arguments)
def test_without_references_a_schema_takes_exactly_what_it_did_unless_it_says_otherwise(original, given_arguments):
    shown = shown_to(original, INLINE)
    fits = jsonschema_rs.is_valid(original, given_arguments)
    if fits or not shown.is_looser:
        assert jsonschema_rs.is_valid(dict(shown.schema), given_arguments) == fits


@given(schemas)
def test_what_is_shown_is_a_schema_without_references_or_alternatives_at_its_root(original):
    shown = shown_to(original, ToolRules(refs="inline", root="object")).schema
    jsonschema_rs.validator_for(dict(shown))
    assert not refs_in(shown)
    assert not {"anyOf", "oneOf", "allOf", "not", "enum"} & set(shown)


# -- in the list ---------------------------------------------


def test_the_original_of_what_is_shown_looser_is_kept_for_the_call():
    original = schema(anyOf=[{"required": ["a"]}, {"required": ["b"]}])
    found = listed({"description": "Draws.", "inputSchema": original}, root="object")
    assert found.originals == {"a__draw": original}
    assert found.tools[0]["description"] == "Draws.\n\nAt least one of these must be given: a; b."
    assert listed({"inputSchema": original}).originals == {}


def test_the_rule_stays_whole_when_the_description_is_cut():
    text = with_lost_words("word " * 100, ("At least one of these must be given: a; b.",), 80)
    assert len(text) <= 80
    assert text.endswith("given: a; b.")
    assert with_lost_words("x", ("y" * 50,), 10) == with_lost_words("", ("y" * 50,), 10)


def test_a_tool_without_a_description_gets_one_where_the_host_demands_it():
    bare = {"inputSchema": schema()}
    assert "description" not in listed(bare).tools[0]
    assert listed(bare, description_required=True).tools[0]["description"] == "draw, a tool of a."
    titled = listed({**bare, "annotations": {"title": "Draw a chart"}, "description": " "}, description_required=True)
    assert titled.tools[0]["description"] == "Draw a chart, a tool of a."


def test_meta_for_the_gateways_own_tools_is_on_no_other():
    profile = Profile(name="host", tools=ToolRules(meta={"all": 1}, own_meta={"own": 2}))
    tool = {"name": "gateway_view", "inputSchema": schema()}
    own, other = build({OWN: [tool], "a": [tool]}, {}, "always", profile).tools
    assert (own["_meta"], other["_meta"]) == ({"all": 1, "own": 2}, {"all": 1})


@pytest.mark.parametrize(
    ("input_schema", "why"),
    [
        (schema(properties={"when": {"type": "date"}}), "inputSchema is invalid (properties.when: there is no type"),
        (
            schema(properties={"a": {"type": "string", "required": True}}),
            "properties.a: required is not a list of names",
        ),
        ({"type": "array"}, 'not a schema of type "object"'),
        (None, 'not a schema of type "object"'),
    ],
)
def test_an_invalid_schema_withholds_that_one_tool_and_no_other(input_schema, why):
    tools = [{"name": "bad", "inputSchema": input_schema}, {"name": "good", "inputSchema": schema()}]
    found = build({"a": tools}, {}, "always", Profile(name="host"))
    assert [tool["name"] for tool in found.tools] == ["a__good"]
    assert why in found.problems[0].text
    assert [name for name, _ in withheld(tools)] == ["bad"]


def test_a_tool_without_a_name_is_named_by_its_place():
    assert list(withheld([{"name": "x", "inputSchema": schema()}, {"inputSchema": schema()}])) == [
        ("tool number 2", "it has no name")
    ]


def test_references_that_lead_nowhere_are_taken_out_and_sound_ones_are_left():
    declared = schema(
        properties={"a": {"$ref": "#/$defs/gone"}, "b": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": {"type": "string"}}}
    )
    tool, changes = repaired({"name": "t", "inputSchema": declared})
    assert tool["inputSchema"]["properties"]["b"] == {"$ref": "#/$defs/x"}
    assert not refs_in(tool["inputSchema"]["properties"]["a"])
    assert changes == ("references in inputSchema that lead nowhere removed: #/$defs/gone",)
    own_base = schema(properties={"a": {"$ref": "https://x.example/s#/y"}}, **{"$id": "https://x.example/s"})
    assert repaired({"name": "t", "inputSchema": own_base})[0]["inputSchema"] == own_base


@pytest.mark.parametrize("output", [{"type": "strnig"}, {"$ref": "#/no"}, {"$ref": "https://x.example"}, 5])
def test_an_output_schema_that_no_client_can_compile_is_left_out(output):
    tool = {"name": "t", "inputSchema": schema(), "outputSchema": output}
    assert unusable(tool) is None
    assert "outputSchema" not in repaired(tool)[0]

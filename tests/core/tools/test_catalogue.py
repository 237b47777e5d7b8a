import json
import re
import string
from dataclasses import dataclass, field
from typing import Any, Literal

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.profiles.profile import LimitRules, Profile, StructuredRules, ToolRules
from gateway.core.tools.catalogue import OWN, Catalogue, Route, build, cut

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "number"}}}


@dataclass(frozen=True)
class Selected:
    """The `tools` settings of an upstream, as plain data."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    rename: dict[str, str] = field(default_factory=dict)
    describe: dict[str, str] = field(default_factory=dict)
    max_tokens: dict[str, int] = field(default_factory=dict)
    content: dict[str, Any] = field(default_factory=dict)


def tool(name: Any, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": SCHEMA, **members}


def host(*, send: Literal["always", "never"] = "always", **rules: Any) -> Profile:
    return Profile(name="host", tools=ToolRules(**rules), structured=StructuredRules(send=send))


def names(catalogue: Catalogue) -> list[str]:
    return [tool["name"] for tool in catalogue.tools]


def texts(catalogue: Catalogue) -> list[str]:
    return [note.text for note in catalogue.notes]


# -- names ---------------------------------------------


def test_tools_come_in_the_order_of_the_configuration_and_then_the_upstreams_own():
    found = build({"b": [tool("z"), tool("a")], "a": [tool("m")]}, {}, "always", host())
    assert names(found) == ["b__z", "b__a", "a__m"]
    assert found.routes == {"b__z": Route("b", "z"), "b__a": Route("b", "a"), "a__m": Route("a", "m")}
    assert found.notes == ()


def test_when_needed_prefixes_all_tools_that_share_a_name_and_no_others():
    found = build({"a": [tool("read"), tool("draw")], "b": [tool("read")]}, {}, "when-needed", host())
    assert names(found) == ["a__read", "draw", "b__read"]


def test_without_prefixes_the_first_upstream_keeps_a_name_and_the_collision_is_a_problem():
    found = build({"a": [tool("read")], "b": [tool("read"), tool("draw")]}, {}, "never", host())
    assert names(found) == ["read", "b__read", "draw"]
    assert [note.text for note in found.problems] == ["'read' of b is offered as 'b__read': another tool has that name"]


def test_the_gateways_own_tools_come_first_and_keep_their_names():
    listed = {"a": [tool("gateway_view")], OWN: [tool("gateway_view")]}
    assert names(build(listed, {}, "always", host())) == ["gateway_view", "a__gateway_view"]
    for prefix in ("when-needed", "never"):
        found = build(listed, {}, prefix, host())
        assert found.routes["gateway_view"] == Route(OWN, "gateway_view")
        assert found.routes["a__gateway_view"] == Route("a", "gateway_view")


def test_characters_that_a_host_does_not_take_are_replaced_and_the_rest_of_a_collision_gets_a_hash():
    found = build({"a": [tool("x.y"), tool("x y"), tool("é\x1b[2J\n")]}, {}, "always", host(name_chars="A-Za-z0-9_-"))
    first, second, third = names(found)
    assert first == "a__x_y"
    assert re.fullmatch(r"a__x_y_[0-9a-f]{8}", second)
    assert third == "a_____2J_"
    assert len(found.problems) == 1
    assert all(note.kind == "schema" for note in found.notes)
    assert "\x1b" not in "".join(texts(found))


def test_a_long_name_is_shortened_with_a_hash_that_depends_on_nothing_else():
    long = "t" * 200
    rules = host(name_max=64, host_prefix="mcp__{server}__")
    alone = names(build({"a": [tool(long)]}, {}, "always", rules, "hub"))
    beside = names(
        build({"b": [tool(long)], "a": [tool("other"), tool(long), tool(long + "t")]}, {}, "always", rules, "hub")
    )
    assert len(alone[0]) == 64 - len("mcp__hub__")
    assert alone[0] == beside[2]
    assert len(set(beside)) == 4


def test_a_host_prefix_that_leaves_no_room_still_leaves_names_apart():
    found = build(
        {"a": [tool("x" * 30), tool("x" * 31)]}, {}, "always", host(name_max=10, host_prefix="mcp__{server}__")
    )
    assert [len(name) for name in names(found)] == [16, 16]
    assert len(set(names(found))) == 2


def test_a_second_tool_of_the_same_name_is_withheld_because_no_call_could_reach_it():
    found = build({"a": [tool("x", description="first"), tool("x", description="second")]}, {}, "always", host())
    assert [tool["description"] for tool in found.tools] == ["first"]
    assert [note.kind for note in found.problems] == ["dropped"]
    assert texts(found) == ["a: a second tool named 'x' withheld"]


def test_a_name_made_to_collide_with_a_hashed_one_is_hashed_again():
    victim = names(build({"a": [tool("x y"), tool("x_y")]}, {}, "always", host(name_chars="A-Za-z0-9_")))[1]
    forged = victim.removeprefix("a__")
    found = build({"a": [tool(forged), tool("x y"), tool("x_y")]}, {}, "always", host(name_chars="A-Za-z0-9_"))
    assert len(set(names(found))) == 3
    assert found.routes[victim] == Route("a", forged)


def test_a_name_with_a_lone_surrogate_is_taken_like_any_other():
    found = build({"a": [tool("\ud800" * 200)]}, {}, "always", host())
    assert len(found.tools) == 1
    json.dumps(found.tools).encode()


# -- selection ---------------------------------------------


def test_globs_on_the_upstreams_own_names_choose_what_is_offered():
    listed = {"a": [tool("get_x"), tool("get_secret"), tool("set_x")]}
    found = build(listed, {"a": Selected(include=("get_*",), exclude=("*secret",))}, "always", host())
    assert names(found) == ["a__get_x"]
    assert found.notes == ()


def test_renaming_and_describing_keep_the_route_and_are_noted():
    settings = {"a": Selected(rename={"x": "chart"}, describe={"x": "Draws."})}
    found = build({"a": [tool("x", description="old")]}, settings, "always", host())
    assert found.tools[0] == {"name": "a__chart", "inputSchema": SCHEMA, "description": "Draws."}
    assert found.routes == {"a__chart": Route("a", "x")}
    assert texts(found) == ["a__chart: renamed from 'x', as configured", "a__chart: described as configured"]


def test_renaming_a_tool_that_is_not_there_is_a_problem_unless_the_upstream_has_no_tools_yet():
    settings = {"a": Selected(rename={"y": "z"})}
    assert [note.text for note in build({"a": [tool("x")]}, settings, "always", host()).problems] == [
        "upstreams.a.tools.rename: no tool named 'y' is offered"
    ]
    assert build({"a": []}, settings, "always", host()).problems == ()


def test_a_budget_for_a_tool_that_is_not_there_is_a_problem():
    found = build({"a": [tool("x")]}, {"a": Selected(max_tokens={"x": 1_000, "y": 1_000})}, "always", host())
    assert [note.text for note in found.problems] == ["upstreams.a.tools.max_tokens: no tool named 'y' is offered"]


def test_the_budget_of_a_tool_alone_makes_its_closed_output_schema_accept_a_cut_result():
    closed = {"type": "object", "additionalProperties": False}
    listed = {"a": [tool("x", outputSchema=closed), tool("y", outputSchema=closed)]}
    found = build(listed, {"a": Selected(max_tokens={"x": 1_000})}, "always", host())
    budgeted, other = (each["outputSchema"] for each in found.tools)
    cut = {"gateway_left_out": "10 of 4,000 rows"}
    assert jsonschema_rs.validator_for(budgeted).is_valid(cut)
    assert other == closed
    assert texts(found) == ["a__x: outputSchema accepts a line that says what was cut"]


def test_two_tools_renamed_to_one_name_both_stay_reachable():
    settings = {"a": Selected(rename={"x": "same", "y": "same"})}
    found = build({"a": [tool("x"), tool("y")]}, settings, "always", host())
    assert {route.tool for route in found.routes.values()} == {"x", "y"}


def test_tools_beyond_the_hosts_limit_are_left_out_by_name_and_the_gateways_own_are_not_among_them():
    listed = {"a": [tool("x"), tool("y"), tool("z")], OWN: [tool("gateway_read")]}
    found = build(listed, {}, "always", host(max_tools=2))
    assert names(found) == ["gateway_read", "a__x"]
    assert set(found.routes) == {"gateway_read", "a__x"}
    assert [note.text for note in found.problems] == ["2 tools beyond the host's limit of 2: a__y, a__z"]


# -- what upstreams get wrong ---------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        "no object",
        None,
        {},
        {"name": None, "inputSchema": SCHEMA},
        {"name": "  ", "inputSchema": SCHEMA},
        {"name": "x"},
        {"name": "x", "inputSchema": None},
        {"name": "x", "inputSchema": {}},
        {"name": "x", "inputSchema": {"type": "string"}},
        {"name": "x", "inputSchema": {"type": ["object"]}},
        {"name": "x", "inputSchema": {"type": "object", "properties": []}},
        {"name": "x", "inputSchema": {"type": "object", "required": [1]}},
    ],
)
def test_a_tool_that_no_host_could_take_is_withheld_and_costs_the_others_nothing(broken: Any):
    found = build({"a": [broken, tool("good")]}, {}, "always", host())
    assert names(found) == ["a__good"]
    assert [note.kind for note in found.problems] == ["dropped"]


@pytest.mark.parametrize(
    ("member", "wrong"),
    [
        ("title", 3),
        ("description", None),
        ("outputSchema", "x"),
        ("annotations", []),
        ("icons", [{"src": 1}]),
        ("icons", {}),
        ("execution", False),
        ("_meta", []),
    ],
)
def test_a_malformed_member_is_left_out_and_noted(member: str, wrong: Any):
    found = build({"a": [tool("x", **{member: wrong})]}, {}, "always", host())
    assert found.tools[0] == {"name": "a__x", "inputSchema": SCHEMA}
    assert texts(found) == [f"a__x: malformed {member} left out"]


def test_malformed_hints_are_left_out_one_by_one():
    found = build({"a": [tool("x", annotations={"readOnlyHint": None, "title": "T", "own": 1})]}, {}, "always", host())
    assert found.tools[0]["annotations"] == {"title": "T", "own": 1}
    assert texts(found) == ["a__x: malformed annotations.readOnlyHint left out"]


def test_terminal_escapes_in_what_hosts_print_are_made_visible():
    escape = "\x1b[31mred\x9b0m\nnext\tline"
    found = build(
        {"a": [tool("x", title=escape, description=escape, annotations={"title": escape})]}, {}, "always", host()
    )
    tame = "␛[31mred\ufffd0m\nnext\tline"
    assert found.tools[0]["title"] == found.tools[0]["description"] == found.tools[0]["annotations"]["title"] == tame
    assert len(found.notes) == 3


# -- edits that a profile asks for ---------------------------------------------


def test_everything_else_is_passed_on_as_the_very_same_objects():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"y": {"$anchor": "y"}},
    }
    declared = {
        "name": "x",
        "future": {"field": [1]},
        "inputSchema": schema,
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "data:image/png;base64,AA=="}],
        "_meta": {"example.org/later": {"resourceUri": "ui://a/b"}},
    }
    found = build({"a": [declared]}, {}, "always", host())
    assert found.tools[0] == {**declared, "name": "a__x"}
    assert list(found.tools[0]) == list(declared)
    assert all(found.tools[0][member] is declared[member] for member in declared if member != "name")
    assert declared["name"] == "x"
    assert found.notes == ()


def test_output_schemas_go_where_structured_content_is_never_sent():
    declared = tool("x", outputSchema={"type": "object"})
    found = build({"a": [declared]}, {}, "always", host(send="never"))
    assert "outputSchema" not in found.tools[0]
    assert texts(found) == ["a__x: outputSchema removed, because this host is sent no structured content"]
    assert "outputSchema" in declared


def test_an_output_schema_that_is_no_object_goes_only_to_hosts_of_the_newest_revision():
    declared = {"a": [tool("x", outputSchema={"type": "array"})]}
    assert "outputSchema" in build(declared, {}, "always", host(), revision="2026-07-28").tools[0]
    assert "outputSchema" not in build(declared, {}, "always", host(), revision="2025-11-25").tools[0]


def test_meta_of_the_profile_is_added_where_the_upstream_says_nothing_itself():
    rules = host(meta={"vendor/size": 500_000, "vendor/other": True})
    found = build({"a": [tool("x", _meta={"vendor/size": 1}), tool("y")]}, {}, "always", rules)
    assert [tool["_meta"] for tool in found.tools] == [
        {"vendor/size": 1, "vendor/other": True},
        {"vendor/size": 500_000, "vendor/other": True},
    ]
    assert texts(found)[0] == "a__x: _meta vendor/other added for this host"


def test_descriptions_are_cut_at_a_sensible_place_and_noted():
    description = "Reads a file. It can read any file that is there. And here comes much more."
    found = build({"a": [tool("x", description=description)]}, {}, "always", host(description_max=60))
    assert found.tools[0]["description"] == "Reads a file. It can read any file that is there. …"
    assert texts(found) == ["a__x: description of 75 characters cut to 60"]


def test_a_profile_without_tool_rules_leaves_even_a_huge_description_alone():
    description = "d" * 1_000_000
    found = build({"a": [tool("x", description=description)]}, {}, "always", Profile(name="p", limits=LimitRules()))
    assert found.tools[0]["description"] is description


@given(st.text(max_size=300), st.integers(1, 200))
def test_a_cut_text_is_within_its_limit_and_begins_as_it_did(text: str, longest: int):
    short = cut(text, longest)
    assert len(short) <= longest
    assert text.startswith(short.removesuffix(" …"))
    assert short == text or len(text) > longest


# -- laws ---------------------------------------------

any_name = st.one_of(
    st.text(min_size=1, max_size=12),
    st.text("ab_. -", min_size=1, max_size=4),
    st.text("x", min_size=100, max_size=220),
)
upstream_name = st.text(string.ascii_lowercase, min_size=1, max_size=3)
tool_lists = st.dictionaries(upstream_name, st.lists(any_name.map(tool), max_size=6), max_size=4)
prefixes = st.sampled_from(["always", "when-needed", "never"])
hosts = st.builds(
    host,
    name_max=st.sampled_from([20, 64, 128]),
    host_prefix=st.sampled_from(["", "mcp__{server}__"]),
    name_chars=st.sampled_from(["A-Za-z0-9_", "A-Za-z0-9_.-", "a-z0-9_"]),
)


@given(tool_lists, prefixes, hosts)
def test_names_are_unique_legal_and_within_the_budget_and_every_route_leads_back(
    lists: Any, prefix: Any, rules: Profile
):
    found = build(lists, {}, prefix, rules, "hub")
    budget = max(16, rules.tools.name_max - len(rules.tools.host_prefix.replace("{server}", "hub")))
    assert all(re.fullmatch(f"[{rules.tools.name_chars}]{{1,{budget}}}", name) for name in names(found))
    assert list(found.routes) == names(found)
    offered = {(upstream, each["name"]) for upstream, tools in lists.items() for each in tools if each["name"].strip()}
    assert {(route.upstream, route.tool) for route in found.routes.values()} == offered
    assert len(found.routes) == len(offered)


@given(tool_lists, st.lists(any_name.map(tool), max_size=6), st.sampled_from(["always", "never"]), hosts)
def test_one_more_upstream_changes_no_name_that_was_there(lists: Any, more: Any, prefix: Any, rules: Profile):
    before = build(lists, {}, prefix, rules)
    after = build({**lists, "zzzz": more}, {}, prefix, rules)
    assert {name: route for name, route in after.routes.items() if route.upstream != "zzzz"} == before.routes


@given(tool_lists, prefixes, hosts)
def test_equal_input_gives_equal_output(lists: Any, prefix: Any, rules: Profile):
    assert build(lists, {}, prefix, rules) == build(lists, {}, prefix, rules)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
hostile_tool = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"name": json_values, "inputSchema": st.just(SCHEMA) | json_values},
        optional=dict.fromkeys(("title", "description", "annotations", "icons", "_meta", "outputSchema"), json_values),
    ),
)


hostile_schema = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        **dict.fromkeys(("properties", "$defs"), st.dictionaries(st.text(max_size=2), json_values, max_size=3)),
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "required", "enum"), st.lists(json_values, max_size=3)),
        **dict.fromkeys(("not", "if"), json_values),
        "$ref": st.sampled_from(["#", "#/properties/a", "#/$defs/a", "x.json", "#a", "#/anyOf/0"]),
    },
)


@given(
    st.lists(hostile_tool | st.builds(lambda schema: {"name": "t", "inputSchema": schema}, hostile_schema)), prefixes
)
def test_nothing_that_an_upstream_declares_breaks_the_list(tools: Any, prefix: Any):
    rules = {"refs": "inline", "root": "object", "schema_max_bytes": 60, "description_required": True}
    found = build({"a": tools}, {}, prefix, host(send="never", description_max=10, meta={"k": 1}, **rules))
    for offered in found.tools:
        assert offered["inputSchema"]["type"] == "object"
        assert isinstance(offered.get("description", ""), str)
    json.dumps(found.tools)

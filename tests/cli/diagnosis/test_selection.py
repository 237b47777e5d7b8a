"""Which tools are called: nothing that may do harm, unless somebody asks for it."""

import pytest

from gateway.cli.diagnosis.selection import read_arguments, select
from gateway.errors import ConfigError

READS = {"readOnlyHint": True}


def tool(name, schema=None, **hints):
    return {"name": name, "inputSchema": schema or {"type": "object"}, "annotations": hints}


TOOLS = [
    tool("reads", readOnlyHint=True),
    tool("says_nothing"),
    tool("writes", readOnlyHint=False),
    tool("destroys", destructiveHint=True),
    tool("contradicts", readOnlyHint=True, destructiveHint=True),
    tool("unmakeable", {"type": "object", "required": ["x"], "properties": {"x": False}}, readOnlyHint=True),
]
NAMES = [one["name"] for one in TOOLS]


def chosen(given=None, *, everything=False, only=()):
    calls, skipped = select(TOOLS, NAMES, given or {}, everything=everything, only=only)
    return [call.tool_name for call in calls], {one.tool: one.why for one in skipped}


def test_by_default_only_tools_that_say_that_they_only_read_are_called():
    called, skipped = chosen()
    assert called == ["reads"]
    assert skipped["says_nothing"] == "it does not declare readOnlyHint: list it in --arguments, or use --all"
    assert skipped["contradicts"].startswith("it declares destructiveHint")
    assert "no arguments could be made up (x: nothing fits its schema)" in skipped["unmakeable"]
    assert set(called) | set(skipped) == set(NAMES)


def test_a_hint_that_is_no_boolean_allows_nothing():
    calls, _ = select([tool("a", readOnlyHint="true")], ["a"], {}, everything=False)
    assert calls == []


def test_tools_that_are_listed_are_called_with_what_is_listed_as_often_as_it_is():
    calls, _ = select(TOOLS, NAMES, {"destroys": [{"x": 1}, {"x": 2}]}, everything=False)
    listed = [call for call in calls if call.tool_name == "destroys"]
    assert [call.arguments for call in listed] == [{"x": 1}, {"x": 2}]
    assert [call.title for call in listed] == ["destroys", "destroys (2)"]
    assert not any(call.made_up for call in listed)


def test_everything_may_be_asked_for():
    assert chosen(everything=True)[0] == NAMES[:-1]


def test_some_may_be_chosen_and_the_others_are_not_mentioned():
    assert chosen(only=("rea*",)) == (["reads"], {})


def test_tools_that_the_gateway_withholds_are_said():
    calls, skipped = select(
        [tool("a", readOnlyHint=True), tool("a", readOnlyHint=True), {"no": "name"}, "x", tool("filtered", **READS)],
        ["a"],
        {},
        everything=False,
    )
    assert len(calls) == 1
    assert [one.tool for one in skipped] == ["a", "tool number 3", "tool number 4", "filtered"]


@pytest.mark.parametrize(("given", "only"), [({"read": [{}]}, ()), ({}, ("read",))])
def test_a_tool_that_is_not_there_is_refused_with_the_nearest(given, only):
    with pytest.raises(ConfigError, match="did you mean 'reads'"):
        chosen(given, only=only)


def test_arguments_in_a_file_are_an_object_of_objects_or_lists_of_them():
    assert read_arguments({"a": {"x": 1}, "b": [{}, {"y": 2}]}, "f") == {"a": [{"x": 1}], "b": [{}, {"y": 2}]}
    for wrong in ([], {"a": 5}, {"a": [5]}, None):
        with pytest.raises(ConfigError, match="f: is not an object of tools"):
            read_arguments(wrong, "f")


def test_a_tool_that_only_pages_call_is_called_where_it_is_listed_alone():
    page = {**tool("refresh", readOnlyHint=True), "_meta": {"ui": {"visibility": ["app"]}}}
    for everything in (False, True):
        calls, [skipped] = select([page], ["refresh"], {}, everything=everything)
        assert (calls, skipped.tool) == ([], "refresh")
        assert "only pages call it" in skipped.why
    [call], _ = select([page], ["refresh"], {"refresh": [{}]}, everything=False)
    assert call.tool_name == "refresh"

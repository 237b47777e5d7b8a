"""Toolsets as a rule, and grants within them."""

import pytest

from gateway.core.model.grant import Grant
from gateway.core.model.toolset_scope import ToolsetScope, scope_as_written

WORK = ToolsetScope(
    "work",
    upstreams=("git*",),
    tools=("browser__snap*", "*__search"),
    exclude=("github__delete_*", "*__search_all"),
    prompts=("notes__daily",),
    resources=("docs__file:///srv/*",),
)


@pytest.mark.parametrize(
    ("upstream", "tool", "is_in"),
    [
        ("github", "merge", True),
        ("github", "delete_repository", False),
        ("browser", "snapshot", True),
        ("browser", "click", False),
        ("mail", "search", True),
        ("github", "search_all", False),
        # Neither part of a pattern reaches into the other: no name of a tool can pass for another upstream's.
        ("x", "browser__snapshot", False),
        ("brow", "ser__snapshot", False),
        ("mail", "github__search", False),
        ("notes", "daily", False),
    ],
)
def test_a_tool_is_in_it_by_both_parts_of_its_name(upstream, tool, is_in):
    assert WORK.has_tool(upstream, tool) is is_in


def test_prompts_and_resources_are_in_it_by_patterns_of_their_own():
    assert WORK.has_prompt("notes", "daily")
    assert WORK.has_prompt("github", "any")
    assert not WORK.has_prompt("notes", "weekly")
    assert WORK.has_resource("docs", "file:///srv/a.md")
    assert not WORK.has_resource("docs", "file:///etc/passwd")
    assert not WORK.has_resource("mail", "file:///srv/a.md")


def test_an_upstream_of_which_nothing_can_be_in_it_does_not_exist():
    named = ToolsetScope("one", tools=("browser__snap*",), prompts=("notes__daily",))
    assert [name for name in ("browser", "notes", "docs") if named.has(name)] == ["browser", "notes"]


def test_several_toolsets_and_a_grant_leave_what_is_in_all_of_them():
    merges = ToolsetScope("merges", tools=("*__merge", "*__search"))
    grant = Grant(upstreams=("github", "mail"), within=(WORK, merges))
    reached = [
        (upstream, tool)
        for upstream in ("github", "gitlab", "mail", "browser")
        for tool in ("merge", "search", "snapshot")
        if grant.reaches_tool(upstream, tool)
    ]
    assert reached == [("github", "merge"), ("github", "search"), ("mail", "search")]
    assert not grant.reaches_all_tools
    assert not grant.reaches_all_upstreams
    assert not grant.reaches("browser")


def test_what_other_groups_reach_is_narrowed_as_well():
    grant = Grant(("mail",), others=(Grant(("browser",)),), within=(WORK,))
    assert grant.reaches_tool("browser", "snapshot")
    assert not grant.reaches_tool("browser", "click")


def test_a_table_as_it_is_written_may_be_anything():
    assert scope_as_written("x", {"upstreams": "all", "tools": [1, "a__b"], "exclude": {}}) == ToolsetScope(
        "x", tools=("a__b",)
    )


def test_single_tools_are_put_in_and_left_out_and_patterns_that_agree_stay():
    changed = WORK.changed(
        {
            ("github", "merge"): False,
            ("github", "delete_repository"): True,
            ("mail", "search_all"): True,
            ("mail", "send[1]"): True,
            ("browser", "snapshot"): True,
        }
    )
    assert (changed.upstreams, changed.prompts) == (WORK.upstreams, WORK.prompts)
    assert changed.tools == ("browser__snap*", "*__search", "mail__search_all", "mail__send[[]1]")
    assert changed.exclude == ("github__merge",)
    assert not changed.has_tool("github", "merge")
    assert all(
        changed.has_tool(*tool) for tool in [("github", "delete_repository"), ("mail", "send[1]"), ("mail", "search")]
    )
    named = ToolsetScope("one", tools=("mail__send", "mail__look"))
    assert named.changed({("mail", "send"): False}) == ToolsetScope("one", tools=("mail__look",))
    assert named.changed({("mail", "send"): False}).changed({("mail", "send"): True}).has_tool("mail", "send")

"""MCP Apps: what tools declare, the uris of their pages, and the lists that hosts with and without pages are given."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.builtin_profiles import load_builtin
from gateway.config.upstream_settings import ToolsSettings
from gateway.core import apps
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import REVISIONS
from gateway.core.profiles.host_profiles import narrow, resolve_profiles
from gateway.core.profiles.match_profile import able
from gateway.core.profiles.profile import AppRules, FeatureRules, Profile, StructuredRules, ToolRules
from gateway.core.tools.catalogue import Catalogue, build

PAGE = "ui://clock/app.html"
PROFILES = resolve_profiles(load_builtin())
OUTPUT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"time": {"type": "string"}},
    "required": ["time"],
    "x-later": {"kept": None},
}
META = {"ui": {"resourceUri": PAGE, "later": [1]}, "ui/resourceUri": PAGE, "example.org/k": {"a": None}}
WITH_PAGE = {"name": "get-time", "inputSchema": {"type": "object"}, "outputSchema": OUTPUT, "_meta": META}
APP_ONLY = {
    "name": "refresh",
    "inputSchema": {"type": "object"},
    "outputSchema": OUTPUT,
    "_meta": {"ui": {"visibility": ["app"]}},
}
PLAIN = {"name": "plain", "inputSchema": {"type": "object"}, "outputSchema": OUTPUT}


def listed(catalogue: Catalogue) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in catalogue.tools}


def meta(**members: Any) -> dict[str, Any]:
    return {"name": "x", "_meta": members}


# -- what hosts and tools declare ---------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "shows"),
    [
        ({}, False),
        ({"extensions": {}}, False),
        ({"extensions": {"io.modelcontextprotocol/ui": {}}}, True),
        ({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}, True),
        ({"extensions": {"io.modelcontextprotocol/ui": None}}, False),
        ({"extensions": ["io.modelcontextprotocol/ui"]}, False),
        ({"experimental": {"io.modelcontextprotocol/ui": {}}}, False),
    ],
)
def test_a_host_shows_pages_if_it_declares_the_extension_or_its_profile_knows_better(capabilities: Any, shows: bool):
    assert apps.shows_apps(capabilities, "declared") is shows
    assert apps.shows_apps(capabilities, "always") is True
    assert apps.shows_apps(capabilities, "never") is False


@pytest.mark.parametrize(
    ("tool", "audience", "for_apps"),
    [
        (meta(), "model", True),
        (meta(ui={"resourceUri": PAGE}), "both", True),
        (meta(**{"ui/resourceUri": PAGE}), "both", True),
        (meta(**{"openai/outputTemplate": PAGE}), "both", True),
        (meta(ui={"visibility": ["model", "app"]}), "both", True),
        (meta(ui={"visibility": ["model"]}), "model", False),
        (meta(ui={"resourceUri": PAGE, "visibility": ["model"]}), "both", False),
        (meta(ui={"visibility": ["app"]}), "app", True),
        (meta(ui={"resourceUri": PAGE, "visibility": ["app"]}), "app", True),
        (meta(ui={"visibility": []}), "app", False),
        (meta(ui={"visibility": "app"}), "model", True),
        (meta(ui={"visibility": ["app", 3, {}]}), "app", True),
        (meta(ui=3), "model", True),
        (meta(**{"openai/visibility": "private"}), "app", True),
        (meta(**{"openai/widgetAccessible": True}), "both", True),
        ({"name": "x", "_meta": 3}, "model", True),
        ("no tool", "model", True),
    ],
)
def test_who_reads_a_tools_results_and_whether_pages_may_call_it(tool: Any, audience: str, for_apps: bool):
    assert (apps.audience(tool), apps.for_apps(tool)) == (audience, for_apps)


def test_what_a_profile_knows_not_to_be_shown_no_upstream_is_told_of():
    declared = {"roots": {}, "extensions": {"io.modelcontextprotocol/ui": {}, "other": {}}}
    caller = Caller(capabilities=declared)
    assert able(caller, Profile(name="x")) is caller
    hidden = able(caller, Profile(name="x", apps=AppRules(host="never")))
    assert hidden.capabilities == {"roots": {}, "extensions": {"other": {}}}
    broken = Profile(name="x", apps=AppRules(host="never"), features=FeatureRules(broken=("roots",)))
    assert able(caller, broken).capabilities == {"extensions": {"other": {}}}


# -- uris ---------------------------------------------


@given(st.from_regex(r"[A-Za-z0-9]+(?:(?:-+|_)[A-Za-z0-9]+)*", fullmatch=True), st.text())
def test_every_uri_of_a_page_comes_back_as_it_was(upstream: str, rest: str):
    uri = f"ui://{rest}"
    told = apps.outward(upstream, uri)
    assert apps.split(told) == (upstream, uri)
    assert apps.inward(upstream, told) == uri


@given(st.text())
def test_every_other_uri_stays_as_it_is(uri: str):
    if not uri.startswith("ui://"):
        assert apps.outward("a", uri) == apps.inward("a", uri) == uri
        assert apps.split(uri) is None


def test_a_result_names_pages_by_the_uris_that_hosts_are_told_and_is_otherwise_the_same():
    embedded = {"uri": PAGE, "text": "<html>", "_meta": {"ui": {"csp": {"connectDomains": ["https://x"]}}, "n": [None]}}
    note = {"type": "resource", "resource": {"uri": "note://x", "text": "x"}}
    item = {"ui": {"resourceUri": PAGE}}
    result = {
        "_meta": {"z": 1, "ui": {"b": 1, "resourceUri": PAGE, "a": 2}, "openai/outputTemplate": PAGE},
        "content": [
            {"type": "text", "text": PAGE, "_meta": item},
            {"type": "resource_link", "uri": PAGE, "name": "page", "_meta": item},
            {"type": "resource", "resource": embedded},
            note,
            "no block",
            {"type": "resource", "resource": None},
            {"type": "resource_link", "uri": 3},
        ],
        "structuredContent": {"uri": PAGE},
    }
    told = apps.outward_result("a", result)
    text, link, page, *rest = told["content"]
    assert told["_meta"]["ui"] == {"b": 1, "resourceUri": "ui://a/clock/app.html", "a": 2}
    assert told["_meta"]["openai/outputTemplate"] == "ui://a/clock/app.html"
    assert (list(told), list(told["_meta"])) == (list(result), list(result["_meta"]))
    assert text is result["content"][0]
    assert link == {**result["content"][1], "uri": "ui://a/clock/app.html"}
    assert link["_meta"] is item
    assert page["resource"] == {**embedded, "uri": "ui://a/clock/app.html"}
    assert page["resource"]["_meta"] is embedded["_meta"]
    assert rest == result["content"][3:]
    assert told["structuredContent"] is result["structuredContent"]


@pytest.mark.parametrize("result", [{}, {"content": 3}, {"content": [], "_meta": {"ui": {}}}, {"_meta": 3}])
def test_a_result_without_a_page_is_the_very_same(result: Any):
    assert apps.outward_result("a", result) is result


@pytest.mark.parametrize(
    "result", [{}, {"messages": 3}, {"messages": ["x", {}, {"content": "x"}, {"content": [{"type": "text"}]}]}]
)
def test_a_prompt_without_a_page_is_the_very_same(result: Any):
    assert apps.outward_prompt("a", result) is result


def test_a_prompt_whose_message_has_several_blocks_names_pages_too():
    link = {"type": "resource_link", "uri": PAGE}
    told = apps.outward_prompt("a", {"messages": [{"role": "user", "content": [{"type": "text"}, link]}]})
    assert told["messages"][0]["content"][1]["uri"] == "ui://a/clock/app.html"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://x/1", "https://x/1"),
        ("# c\r\n\r\n https://x/1 \r\nhttps://x/2", "https://x/1"),
        ("# c", None),
        ("", None),
    ],
)
def test_the_address_of_a_page_is_the_first_of_its_list(text: str, address: str | None):
    assert apps.address_in_list(text) == address


# -- lists ---------------------------------------------


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("name", PROFILES)
def test_the_output_schema_and_meta_of_a_tool_with_a_page_are_the_upstreams_for_every_profile(name: str, revision: str):
    profile = narrow(PROFILES[name], revision)
    found = build({"a": [WITH_PAGE]}, {}, "always", profile, revision=revision, shows_apps=True)
    tool = next(tool for tool in found.tools if tool["name"].endswith("__get-time") or "get_time" in tool["name"])
    assert tool["outputSchema"] is OUTPUT
    expected = {
        **META,
        "ui": {"resourceUri": "ui://a/clock/app.html", "later": [1]},
        "ui/resourceUri": "ui://a/clock/app.html",
    }
    assert {key: tool["_meta"][key] for key in META} == expected


def test_other_tools_and_other_hosts_lose_the_output_schema_as_ever():
    profile = Profile(name="host", structured=StructuredRules(send="never"))
    found = listed(build({"a": [WITH_PAGE, PLAIN, APP_ONLY]}, {}, "always", profile, shows_apps=True))
    assert {name for name, tool in found.items() if "outputSchema" in tool} == {"a__get-time", "a__refresh"}
    assert "outputSchema" not in listed(build({"a": [WITH_PAGE]}, {}, "always", profile))["a__get-time"]


def test_tools_for_pages_alone_are_hidden_where_no_page_is_shown_and_no_other_name_hangs_on_that():
    lists = {"a": [APP_ONLY], "b": [{**APP_ONLY, "_meta": {}}]}
    shown = build(lists, {}, "never", Profile(name="host"), shows_apps=True)
    hidden = build(lists, {}, "never", Profile(name="host"))
    assert set(shown.routes) == {"refresh", "b__refresh"}
    assert set(hidden.routes) == {"b__refresh"}
    assert any("hidden" in note.text for note in hidden.notes)
    assert hidden.own_names == {}


def test_pages_know_tools_by_the_upstreams_own_names_but_for_what_a_policy_hides():
    selected = ToolsSettings(exclude=("secret*",), rename={"refresh": "again"})
    secret = {**APP_ONLY, "name": "secret-refresh"}
    model_only = {**PLAIN, "name": "for-models", "_meta": {"ui": {"visibility": ["model"]}}}
    found = build(
        {"a": [APP_ONLY, secret, model_only, PLAIN]}, {"a": selected}, "always", Profile(name="host"), shows_apps=True
    )
    assert set(found.routes) == {"a__again", "a__for-models", "a__plain"}
    assert set(found.own_names) == {"refresh", "plain"}
    [route] = found.own_names["refresh"]
    assert (route.upstream, route.tool, route.audience, route.only_app) == ("a", "refresh", "app", True)
    [route] = found.own_names["plain"]
    assert (route.audience, route.only_app) == ("app", False)


def test_pages_reach_tools_beyond_the_hosts_limit_too():
    profile = Profile(name="host", tools=ToolRules(max_tools=1))
    found = build({"a": [PLAIN, APP_ONLY]}, {}, "always", profile, shows_apps=True)
    assert set(found.routes) == {"a__plain"}
    assert set(found.own_names) == {"plain", "refresh"}


def test_a_host_whose_pages_call_only_what_is_listed_is_listed_it_for_pages_alone():
    profile = Profile(name="host", apps=AppRules(calls="listed"), structured=StructuredRules(send="never"))
    lists = {"a": [WITH_PAGE, APP_ONLY, PLAIN], "b": [WITH_PAGE]}
    found = build(lists, {}, "always", profile, shows_apps=True)
    tools = listed(found)
    assert len(tools) == len(found.tools)
    assert set(tools) == {"a__get-time", "a__plain", "b__get-time", "get-time", "refresh"}
    assert "a__refresh" in found.routes  # as a page's call that says which one it means
    assert tools["get-time"]["_meta"]["ui"]["visibility"] == tools["refresh"]["_meta"]["ui"]["visibility"] == ["app"]
    assert tools["get-time"]["outputSchema"] is OUTPUT
    assert found.listed_for_pages == {"get-time", "refresh"}
    assert set(listed(build(lists, {}, "always", profile))) == {"a__get-time", "a__plain", "b__get-time"}
    bare = build({"a": [WITH_PAGE]}, {}, "never", profile, shows_apps=True)
    assert [tool["name"] for tool in bare.tools] == ["get-time"]
    assert bare.listed_for_pages == frozenset()


def test_what_is_listed_for_pages_alone_is_no_second_tool_with_a_page():
    """The host would show two of them, and nothing opens a page for the call of a page."""
    profile = Profile(name="host", apps=AppRules(calls="listed"))
    meta = {"ui/resourceUri": PAGE, "openai/outputTemplate": PAGE, "ui": {"resourceUri": PAGE, "csp": {}}, "k": [None]}
    tools = listed(build({"a": [{**WITH_PAGE, "_meta": meta}]}, {}, "always", profile, shows_apps=True))
    assert apps.pages(tools["a__get-time"]) != ()
    assert tools["get-time"]["_meta"] == {"ui": {"csp": {}, "visibility": ["app"]}, "k": [None]}


@pytest.mark.parametrize("most", [2, 3])
def test_a_tool_for_pages_alone_is_listed_once_under_the_name_that_they_know(most: int):
    rules = ToolRules(max_tools=most)
    profile = Profile(name="host", apps=AppRules(calls="listed"), tools=rules)
    found = build({"a": [APP_ONLY, PLAIN], "b": [APP_ONLY]}, {}, "always", profile, shows_apps=True)
    assert [tool["name"] for tool in found.tools] == ["a__plain", "refresh"]
    assert len(found.own_names["refresh"]) == 2
    short = Profile(name="host", apps=AppRules(calls="listed"), tools=ToolRules(name_chars="a-z0-9_"))
    found = build({"a": [{**APP_ONLY, "name": "re-fresh"}]}, {}, "always", short, shows_apps=True)
    assert len(found.tools) == 1  # the host takes no tool of the name that pages know


def test_the_revisions_that_are_tried_are_those_with_structured_content():
    assert REVISIONS[-3:] == ("2025-06-18", "2025-11-25", "2026-07-28")


def test_a_page_is_known_by_its_type_its_size_and_what_it_asks_for():
    meta = {
        "ui": {"csp": {"connectDomains": ["https://a"], "frameDomains": [], "odd": 5}, "permissions": {"camera": {}}}
    }
    page = apps.page_facts({"mimeType": "text/html; profile=MCP-app", "text": "ä", "_meta": meta})
    assert (page.byte_size, page.faults, page.permissions) == (2, (), ("camera",))
    assert page.domains == {"connect": ("https://a",)}
    older = {"openai/widgetCSP": {"connect_domains": ["https://b"], "resource_domains": ["https://c"]}}
    page = apps.page_facts({"mimeType": "text/html+skybridge", "blob": "AAAA", "_meta": older})
    assert page.byte_size == 3
    assert page.domains == {"connect": ("https://b",), "resource": ("https://c",)}
    [fault] = page.faults
    assert fault == (
        "its type is text/html+skybridge, which only ChatGPT shows; other hosts show text/html;profile=mcp-app"
    )


@pytest.mark.parametrize("contents", [{}, {"mimeType": 5, "text": None, "_meta": []}, {"_meta": {"ui": {"csp": [1]}}}])
def test_whatever_a_server_gives_for_a_page_is_looked_at(contents: dict[str, Any]):
    faults = ("its type is not given, and hosts show only text/html;profile=mcp-app", "it is empty")
    assert apps.page_facts(contents).faults == faults

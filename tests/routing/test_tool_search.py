"""Tool search: a short list, the same tools behind it, and the same rules for them."""

import threading
from dataclasses import replace
from typing import Any

import anyio
import pytest

from benchmarks.tokens import tool_search
from benchmarks.tokens.pages import DOCS
from gateway.config.policy_settings import PolicySettings, RuleSettings
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.config.toolset_settings import ToolsetSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.core.profiles.profile import Profile
from gateway.core.tokens import list_tokens
from gateway.core.tools.catalogue import Catalogue
from gateway.errors import InvalidRequest, NotAllowed, ScopeMissing, UnknownTool
from gateway.routing.tool_search import ToolSearch
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio

HOST = Caller(revision="2025-11-25", client_name="any", session="s1")
SEARCH = ["gateway_find_tools", "gateway_call_tool"]


def tool(name, description="", **properties):
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    return {"name": name, "description": description, "inputSchema": schema}


@pytest.fixture
def github(fake_upstream):
    return fake_upstream(
        "github",
        [
            tool("create_issue", "Opens a new issue in a repository.", title="string"),
            tool("list_issues", "Lists the issues of a repository."),
            tool("get_me", "Tells who is logged in."),
        ],
    )


@pytest.fixture
def browser(fake_upstream):
    return fake_upstream("browser", [tool("takeScreenshot", "Captures the page as an image.", fullPage="boolean")])


@pytest.fixture
def served(router, github, browser):
    def make(mode: Any = "always", *, above=10_000, pinned=(), **sections):
        settings = ToolSearchSettings(mode=mode, above=above, pinned=pinned)
        return router(github, browser, tool_search=settings, **sections)

    return make


async def listed(gateway, caller=HOST):
    return [each["name"] for each in (await gateway.respond("tools/list", {}, caller))["tools"]]


async def found(gateway, query, caller=HOST, **more):
    params = {"name": "gateway_find_tools", "arguments": {"query": query, **more}}
    return (await gateway.respond("tools/call", params, caller))["content"][0]["text"]


async def call(gateway, name, arguments=None, caller=HOST, **more):
    params = {"name": "gateway_call_tool", "arguments": {"name": name, "arguments": arguments}, **more}
    return await gateway.respond("tools/call", params, caller)


async def test_the_list_is_short_and_never_changes(served, github):
    gateway = served(pinned=("github__get_*",))
    assert await listed(gateway) == [*SEARCH, "github__get_me"]
    before = (await gateway.respond("tools/list", {}, HOST))["tools"][:2]
    github.tool_list = [*github.tool_list, tool("new_one")]
    gateway.upstream_changed("github", "tools")
    assert (await gateway.respond("tools/list", {}, HOST))["tools"][:2] == before


@pytest.mark.parametrize(
    ("mode", "above", "is_short"),
    [("never", 1, False), ("auto", 10_000, False), ("auto", 20, True), ("always", 1, True)],
)
async def test_it_replaces_the_list_as_the_mode_says(served, mode, above, is_short):
    names = await listed(served(mode, above=above))
    assert (names == SEARCH) is is_short
    assert ("github__create_issue" in names) is not is_short
    assert ("gateway_find_tools" in names) is is_short


async def test_a_query_finds_signatures_best_first(served):
    gateway = served()
    answer = await found(gateway, "open a new issue")
    assert answer.splitlines()[1:3] == ["github__create_issue(title?: string)", "  Opens a new issue in a repository."]
    assert "github__list_issues()" in answer
    assert "browser" not in answer
    assert (await found(gateway, "screenshots")).splitlines()[1] == "browser__takeScreenshot(fullPage?: boolean)"
    assert (await found(gateway, "full page", limit=1)).splitlines()[1].startswith("browser__takeScreenshot")


@pytest.mark.parametrize(
    "query",
    ['"', "issue OR", "NEAR(a b)", "name:issue", "issue*", "-issue", "(", "'; DROP TABLE tools; --", "a" * 2_000],
)
async def test_nothing_in_a_query_is_an_operator(served, query):
    gateway = served()
    assert (await found(gateway, query)).startswith("[")
    assert "github__create_issue" in await found(gateway, "issue")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "x" * 100_000}, "the query has 100,000 characters, and may have 2,000"),
        ({"query": "  "}, "query must say in a few words"),
        ({"query": 7}, "query must say in a few words"),
        ({}, "query"),
        ({"query": "a", "limit": 0}, "limit"),
        ({"query": "a", "limit": True}, "limit"),
    ],
)
async def test_a_bad_query_is_a_failed_result_that_says_why(served, arguments, words):
    params = {"name": "gateway_find_tools", "arguments": arguments}
    result = await served().respond("tools/call", params, HOST)
    assert result["isError"] is True
    assert words in result["content"][0]["text"]


async def test_what_has_none_of_the_words_names_the_servers_that_there_are(served):
    assert await found(served(), "weather") == (
        "[no tool has any of these words: 'weather'; there are tools of: github (3), browser (1)]"
    )


async def test_tools_of_one_signature_are_both_found_each_by_its_own_name(router, fake_upstream):
    twins = [fake_upstream(name, [tool("search", "Searches.", query="string")]) for name in ("one", "two")]
    gateway = router(*twins, tool_search=ToolSearchSettings(mode="always"))
    lines = (await found(gateway, "search")).splitlines()
    assert lines[1::2] == ["one__search(query?: string)", "two__search(query?: string)"]
    await call(gateway, "two__search")
    assert (twins[0].asked, len(twins[1].asked)) == ([], 1)


async def test_a_call_is_that_of_the_tool_itself(served, github, shaper):
    github.answer = lambda *_: {"content": [{"type": "text", "text": "done"}], "structuredContent": {"id": 1}}
    gateway = served(shaper=shaper)
    direct = await gateway.respond("tools/call", {"name": "github__create_issue", "arguments": {"title": "x"}}, HOST)
    assert await call(gateway, "github__create_issue", {"title": "x"}) == direct
    assert await call(gateway, "github__create_issue", '{"title": "x"}') == direct
    assert [asked[1] for asked in github.asked] == [{"name": "create_issue", "arguments": {"title": "x"}}] * 3


async def test_progress_and_meta_go_with_it(served, github):
    heard = []

    async def on_progress(done, of, words):
        heard.append(words)

    params = {"name": "gateway_call_tool", "arguments": {"name": "github__get_me"}, "_meta": {"mine": 1}}
    await served().respond("tools/call", params, HOST, on_progress=on_progress)
    assert heard == ["half"]
    assert github.asked[0][1]["_meta"] == {"mine": 1}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidRequest),
        ({"name": 7}, InvalidRequest),
        ({"name": "gateway_call_tool", "arguments": {"name": "github__get_me"}}, InvalidRequest),
        ({"name": "github__get_me", "arguments": [1]}, InvalidRequest),
        ({"name": "github__get_me", "arguments": "[1"}, InvalidRequest),
        ({"name": "github__get_me", "arguments": '{"a":' + "[" * 900 + "]" * 900 + "}"}, InvalidRequest),
        ({"name": "github__get_me", "arguments": "[" * 100_000}, InvalidRequest),
        ({"name": "github__get_my", "arguments": {}}, UnknownTool),
    ],
)
async def test_a_call_of_nothing_is_an_error(served, github, arguments, error):
    with pytest.raises(error):
        await served().respond("tools/call", {"name": "gateway_call_tool", "arguments": arguments}, HOST)
    assert github.asked == []


async def test_where_tools_are_searched_an_unknown_one_leads_to_the_search(served):
    params = {"name": "gateway_call_tool", "arguments": {"name": "nothing_like_it"}}
    with pytest.raises(UnknownTool, match=r"no tool named 'nothing_like_it'.*find one with gateway_find_tools"):
        await served().respond("tools/call", params, HOST)


async def test_arguments_written_as_text_are_as_safe_as_any(served, github):
    await call(served(), "github__get_me", '{"half": "\\ud800", "none": NaN, "many": 1e999}')
    assert github.asked[0][1]["arguments"] == {"half": "\ufffd", "none": None, "many": None}


async def test_rules_grants_and_toolsets_hold_for_what_is_found_and_called(served, github):
    rule = RuleSettings(name="no", effect="deny", tools=("github__create_*",))
    gateway = served(policy=PolicySettings(rules=(rule,)))
    assert "create_issue" not in await found(gateway, "issue")
    with pytest.raises(NotAllowed):
        await call(gateway, "github__create_issue")
    stranger = replace(HOST, principal="bob", grant=Grant(upstreams=("browser",)))
    assert "github" not in await found(served(), "issue", stranger)
    with pytest.raises(UnknownTool):
        await call(served(), "github__create_issue", caller=stranger)
    upstreams = {name: UpstreamSettings(command="fake") for name in ("github", "browser")}
    narrow = served(toolsets={"me": ToolsetSettings(tools=("github__get_me",))}, upstreams=upstreams)
    mine = replace(HOST, toolsets=("me",))
    assert "create_issue" not in await found(narrow, "issue", mine)
    with pytest.raises(UnknownTool):
        await call(narrow, "github__create_issue", caller=mine)
    scoped = replace(HOST, grant=Grant(scoped=(("github__create_*", ("write",)),)))
    params = {"name": "gateway_call_tool", "arguments": {"name": "github__create_issue"}}
    with pytest.raises(ScopeMissing):
        await served().check_scopes(params, scoped)
    assert github.asked == []


async def test_a_model_calls_no_tool_that_is_for_pages_alone(router, fake_upstream):
    pages = {"ui": {"visibility": ["app"]}}
    shop = fake_upstream("shop", [tool("show", "Shows the shop."), {**tool("pay", "Pays."), "_meta": pages}])
    gateway = router(shop, tool_search=ToolSearchSettings(mode="always"))
    shows = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    host = replace(HOST, capabilities=shows)
    assert "shop__pay" in await listed(gateway, host)
    for name in ("shop__pay", "pay"):
        with pytest.raises(UnknownTool):
            await call(gateway, name, caller=host)
    assert shop.asked == []
    await gateway.respond("tools/call", {"name": "shop__pay", "arguments": {}}, host)  # the page itself
    assert len(shop.asked) == 1


async def test_a_short_list_does_not_wait_until_a_long_one_is_counted(monkeypatch):
    counting, go_on = threading.Event(), threading.Event()

    def slowly(tools: Any) -> int:
        if len(names := [each["name"] for each in tools]) > 1:
            counting.set()
            assert go_on.wait(30)
        return len(names)

    monkeypatch.setattr("gateway.routing.tool_search.list_tokens", slowly)
    search, profile = ToolSearch(ToolSearchSettings(mode="auto")), Profile(name="any")
    short, long = (Catalogue(tuple(tool(f"t{place}") for place in range(count))) for count in (1, 200))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(search.listed, long, profile)
        assert await anyio.to_thread.run_sync(counting.wait, 30)
        threading.Timer(5, go_on.set).start()
        assert len(await search.listed(short, profile)) == 1
        assert not go_on.is_set()
        go_on.set()


async def test_a_search_while_the_catalogue_changes_sees_the_one_or_the_other(served, github):
    gateway = served()
    assert "github__create_issue" in await found(gateway, "issue")
    github.tool_list = [tool("delete_issue", "Deletes an issue.")]
    gateway.upstream_changed("github", "tools")
    assert "github__delete_issue" in await found(gateway, "issue")
    assert "create_issue" not in await found(gateway, "issue")
    with pytest.raises(UnknownTool):
        await call(gateway, "github__create_issue")
    github.become(UpstreamState.FAILED, "it burnt")
    github.tool_list = []
    gateway.upstream_changed("github", "tools")
    assert "github" not in await found(gateway, "issue")


async def test_what_was_found_can_be_called_when_the_list_has_become_short_enough(served, github):
    gateway = served("auto", above=list_tokens(github.tool_list))  # and the browser's tool
    assert await listed(gateway) == SEARCH
    github.tool_list = github.tool_list[:1]
    gateway.upstream_changed("github", "tools")
    assert "github__create_issue" in await listed(gateway)
    assert "github__create_issue" in await found(gateway, "issue")
    assert (await call(gateway, "github__create_issue"))["content"][0]["text"] == "ok"


async def test_a_host_that_takes_few_tools_reaches_all_by_searching(served, profiles, github):
    github.tool_list = [tool(f"tool_{n}", f"Number {n}.") for n in range(300)]
    few = replace(HOST, profile="few")
    assert len(await listed(served("auto", above=1_000_000), few)) == 2
    assert "github__tool_299" in await found(served("auto", above=1_000_000), "number 299", few)
    assert len(await listed(served("never"), few)) == 40


async def test_a_profile_decides_for_its_hosts(served):
    assert "github__get_me" in await listed(served("always"), replace(HOST, profile="searching"))


async def test_an_upstreams_own_tool_of_that_name_is_its_own_where_there_is_no_search(router, fake_upstream):
    other = fake_upstream("other", [tool("gateway_call_tool")])
    gateway = router(other, prefix="never")
    await gateway.respond("tools/call", {"name": "gateway_call_tool", "arguments": {"name": "x"}}, HOST)
    assert other.asked[0][1] == {"name": "gateway_call_tool", "arguments": {"name": "x"}}


async def test_the_public_set_is_searched_as_the_page_says():
    rows = await tool_search.measure()
    assert tool_search.finds_enough(rows)
    page = (DOCS / "tools.md").read_text("utf-8")
    assert "\n".join(tool_search.table(rows)) in page, "python -m benchmarks.tokens --write"

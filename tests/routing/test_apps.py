"""MCP Apps: whose tool a page means by its bare name, whose page a uri is, and what passes as it came."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import ToolsSettings, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import UnknownResource, UnknownTool, UpstreamRefused
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio

PAGE = "ui://clock/app.html"
UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
HOST = Caller(revision="2025-11-25", client_name="a-host", capabilities=UI, session="one")
OTHER = replace(HOST, client_name="another-host", session="two")
BLIND = replace(HOST, capabilities={})
SCHEMA = {"type": "object"}
SHOW = {"name": "show", "inputSchema": SCHEMA, "_meta": {"ui": {"resourceUri": PAGE}, "ui/resourceUri": PAGE}}
REFRESH = {"name": "refresh", "inputSchema": SCHEMA, "_meta": {"ui": {"visibility": ["app"]}}}
PLAIN = {"name": "plain", "inputSchema": SCHEMA}
BIG = {"content": [{"type": "text", "text": "x" * 300}], "structuredContent": {"n": 1}, "_meta": {"k": None}}


def serving(name: str) -> Any:
    """Answers with whose server it is; has one page, and refuses every other."""

    def answer(method: str, params: Any) -> Any:
        if method == "resources/read":
            if params["uri"] != PAGE:
                raise UpstreamRefused(name, -32002, "no such resource")
            content = {"uri": PAGE, "text": f"<p>{name}", "_meta": {"ui": {"csp": {"a": [None]}}}}
            return {"contents": [content], "_meta": {"k": 1}}
        return {**BIG, "content": [{"type": "text", "text": f"{params['name']} of {name}"}]}

    return answer


def clock(fake_upstream: Any, name: str, *more: Any, **options: Any) -> Any:
    return fake_upstream(name, [SHOW, REFRESH, PLAIN, *more], answer=serving(name), **options)


async def call(gateway: Any, name: str, caller: Caller = HOST) -> dict[str, Any]:
    return await gateway.respond("tools/call", {"name": name, "arguments": {"x": 1}}, caller)


async def read(gateway: Any, uri: str, caller: Caller = HOST) -> dict[str, Any]:
    return await gateway.respond("resources/read", {"uri": uri}, caller)


def says(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


# -- bare names ---------------------------------------------


async def test_a_bare_name_of_one_upstream_is_that_ones(router: Any, fake_upstream: Any):
    a = clock(fake_upstream, "a")
    result = await call(router(a, fake_upstream("b", [PLAIN])), "refresh")
    assert says(result) == "refresh of a"
    assert a.asked[0][1] == {"name": "refresh", "arguments": {"x": 1}}


async def test_of_several_the_one_is_meant_whose_page_the_caller_opened_last(router: Any, fake_upstream: Any):
    gateway = router(clock(fake_upstream, "a"), clock(fake_upstream, "b"))
    await read(gateway, "ui://b/clock/app.html")
    assert says(await call(gateway, "refresh")) == "refresh of b"
    await read(gateway, "ui://a/clock/app.html")
    assert says(await call(gateway, "refresh")) == "refresh of a"
    await call(gateway, "b__show")  # a host that keeps the page does not read it again
    assert says(await call(gateway, "refresh")) == "refresh of b"
    await call(gateway, "show")  # by a page: opens none
    assert says(await call(gateway, "refresh")) == "refresh of b"


async def test_what_another_session_opened_counts_for_the_same_client_and_less_than_ones_own(
    router: Any, fake_upstream: Any
):
    gateway = router(clock(fake_upstream, "a"), clock(fake_upstream, "b"))
    await read(gateway, "ui://b/clock/app.html")
    assert says(await call(gateway, "refresh", replace(HOST, session="later"))) == "refresh of b"
    assert says(await call(gateway, "refresh", replace(HOST, session=None))) == "refresh of b"
    await read(gateway, "ui://a/clock/app.html", replace(HOST, session="later"))
    assert says(await call(gateway, "refresh")) == "refresh of b"
    for stranger in (OTHER, replace(HOST, session="x", principal="ann")):
        with pytest.raises(UnknownTool):
            await call(gateway, "refresh", stranger)


async def test_a_name_that_may_be_that_of_several_is_refused_with_the_names_they_have(router: Any, fake_upstream: Any):
    gateway = router(clock(fake_upstream, "a"), clock(fake_upstream, "b"))
    with pytest.raises(UnknownTool) as caught:
        await call(gateway, "refresh")
    assert "'a__refresh', 'b__refresh'" in str(caught.value)


async def test_a_refused_name_leads_to_names_in_the_hosts_list_alone(router: Any, fake_upstream: Any):
    """Cursor lists the names that pages know, refuses what is not listed, and is not listed `a__refresh`."""
    gateway = router(clock(fake_upstream, "a"), clock(fake_upstream, "b"), profile="listed")
    listed = [tool["name"] for tool in (await gateway.respond("tools/list", {}, HOST))["tools"]]
    assert "refresh" in listed
    for name, told in (
        ("refresh", "'refresh' is a tool of a, b (open the page that calls it first)"),
        ("show", "'show' is a tool of a, b; their names here: 'a__show', 'b__show' (call one of these, or open"),
    ):
        with pytest.raises(UnknownTool) as caught:
            await call(gateway, name)
        assert told in str(caught.value)
    with pytest.raises(UnknownTool) as caught:
        await call(gateway, "a__refrehs")
    assert "a__refresh" not in str(caught.value)


async def test_an_exposed_name_comes_first(router: Any, fake_upstream: Any):
    a, b = clock(fake_upstream, "a"), fake_upstream("b", [{"name": "a__refresh", "inputSchema": SCHEMA}])
    assert says(await call(router(a, b), "a__refresh")) == "refresh of a"


async def test_a_bare_name_is_nobodys_for_a_host_without_pages(router: Any, fake_upstream: Any):
    gateway = router(clock(fake_upstream, "a"))
    for name in ("plain", "refresh", "a__refresh"):
        with pytest.raises(UnknownTool):
            await call(gateway, name, BLIND)
    tools = (await gateway.respond("tools/list", {}, BLIND))["tools"]
    assert [tool["name"] for tool in tools] == ["a__show", "a__plain"]


async def test_what_a_policy_hides_no_page_can_call(router: Any, fake_upstream: Any):
    for hidden in (ToolsSettings(exclude=("refresh",)), ToolsSettings(include=("show",))):
        upstream = clock(fake_upstream, "a", settings=UpstreamSettings(command="x", tools=hidden))
        with pytest.raises(UnknownTool):
            await call(router(upstream), "refresh")
        assert upstream.asked == []


async def test_a_page_cannot_call_what_is_for_the_model_alone(router: Any, fake_upstream: Any):
    model_only = {**PLAIN, "name": "ask", "_meta": {"ui": {"visibility": ["model"]}}}
    gateway = router(clock(fake_upstream, "a", model_only))
    with pytest.raises(UnknownTool):
        await call(gateway, "ask")
    assert says(await call(gateway, "a__ask")) == "ask of a"


async def test_a_renamed_tool_is_called_by_the_name_that_its_page_knows(router: Any, fake_upstream: Any):
    settings = UpstreamSettings(command="x", tools=ToolsSettings(rename={"refresh": "again"}))
    gateway = router(clock(fake_upstream, "a", settings=settings))
    assert says(await call(gateway, "refresh")) == says(await call(gateway, "a__again")) == "refresh of a"


@pytest.mark.parametrize("name", ["only", "b__only"])
async def test_a_page_of_one_upstream_does_not_reach_the_tools_for_anothers_pages(
    router: Any, fake_upstream: Any, name: str
):
    b = fake_upstream("b", [{**SHOW, "name": "show_b"}, {**REFRESH, "name": "only"}], answer=serving("b"))
    gateway = router(clock(fake_upstream, "a"), b)
    assert says(await call(gateway, name, OTHER)) == "only of b"  # of which nothing is known
    await read(gateway, "ui://a/clock/app.html")
    with pytest.raises(UnknownTool, match="for pages of b alone"):
        await call(gateway, name)
    await call(gateway, "b__show_b")
    assert says(await call(gateway, name)) == "only of b"


async def test_after_a_restart_a_page_that_was_open_goes_on_until_another_upstreams_is_opened(
    router: Any, fake_upstream: Any
):
    """The extension blocks calls of one server's page of what another has for its own pages alone."""
    b = fake_upstream("b", [{**SHOW, "name": "show_b"}, {**REFRESH, "name": "only"}], answer=serving("b"))
    await read(router(clock(fake_upstream, "a"), b), "ui://b/clock/app.html")
    restarted = router(clock(fake_upstream, "a"), b)
    assert says(await call(restarted, "only")) == "only of b"
    await read(restarted, "ui://a/clock/app.html")
    with pytest.raises(UnknownTool, match="open the page of b again"):
        await call(restarted, "only")
    await call(restarted, "b__show_b")
    assert says(await call(restarted, "only")) == "only of b"


async def test_a_bare_name_is_not_given_to_one_while_another_may_bring_it_yet(router: Any, fake_upstream: Any):
    late = clock(fake_upstream, "late", state=UpstreamState.STARTING)
    late.tool_list = ()
    gateway = router(clock(fake_upstream, "a"), late, profile="codex")
    async with anyio.create_task_group() as tasks:
        caught: list[Any] = []

        async def ask() -> None:
            try:
                caught.append(await call(gateway, "refresh"))
            except UnknownTool as error:
                caught.append(error)

        tasks.start_soon(ask)
        with anyio.fail_after(60):
            while not late.awaited:
                await anyio.lowlevel.checkpoint()
        late.tool_list = [REFRESH]
        gateway.upstream_changed("late", "tools")
        late.become(UpstreamState.READY)
    assert isinstance(caught[0], UnknownTool)


# -- what passes ---------------------------------------------


async def test_what_only_a_page_reads_is_not_shaped(router: Any, fake_upstream: Any):
    gateway = router(clock(fake_upstream, "a"))
    for name in ("a__refresh", "refresh", "show", "plain"):
        result = await call(gateway, name)
        assert result == {**BIG, "content": result["content"]}
    assert (await call(gateway, "a__show"))["app"] is True
    assert "app" not in (await call(gateway, "a__plain"))
    assert "app" not in (await call(gateway, "a__show", BLIND))


async def test_only_the_hard_limit_holds_for_what_a_page_reads(router: Any, fake_upstream: Any):
    def answer(method: str, params: Any) -> Any:
        return {"content": [{"type": "text", "text": "x" * 5_000}]}

    gateway = router(fake_upstream("a", [REFRESH], answer=answer), result_bytes=2_000)
    result = await call(gateway, "refresh")
    assert result["isError"] is True
    assert "limits.result_bytes" in says(result)


async def test_what_a_page_is_told_of_can_be_read(router: Any, fake_upstream: Any):
    def answer(method: str, params: Any) -> Any:
        if method == "resources/read":
            return {"contents": [{"uri": params["uri"], "text": "rows"}]}
        block = {"type": "resource", "resource": {"uri": "rows://2", "blob": "AAAA"}}
        return {"content": [{"type": "resource_link", "uri": "rows://1", "name": "x"}, block, 3]}

    a = fake_upstream("a", [REFRESH], offers=("resources",), answer=answer)
    other = fake_upstream("b", [PLAIN], offers=("resources",), answer=serving("b"))
    gateway = router(other, a)
    await call(gateway, "refresh")
    for uri in ("rows://1", "rows://2"):
        assert (await read(gateway, uri))["contents"][0]["text"] == "rows"
    assert other.asked == []


# -- pages ---------------------------------------------


async def test_each_tool_has_the_page_of_its_own_server(router: Any, fake_upstream: Any):
    lists = {
        "resource_list": [{"uri": PAGE, "name": "page"}],
        "template_list": [{"uriTemplate": "ui://x/{y}", "name": "t"}],
    }
    gateway = router(*(clock(fake_upstream, name, **lists) for name in ("a", "b")))
    tools = (await gateway.respond("tools/list", {}, HOST))["tools"]
    resources = (await gateway.respond("resources/list", {}, HOST))["resources"]
    templates = (await gateway.respond("resources/templates/list", {}, HOST))["resourceTemplates"]
    for name in ("a", "b"):
        uri = f"ui://{name}/clock/app.html"
        [show] = [tool for tool in tools if tool["name"] == f"{name}__show"]
        assert show["_meta"] == {"ui": {"resourceUri": uri}, "ui/resourceUri": uri}
        result = await read(gateway, uri)
        [content] = result["contents"]
        assert content == {"uri": uri, "text": f"<p>{name}", "_meta": {"ui": {"csp": {"a": [None]}}}}
        assert result["_meta"] == {"k": 1}
        assert {"uri": uri, "name": "page"} in resources
        assert {"uriTemplate": f"ui://{name}/x/{{y}}", "name": "t"} in templates


@pytest.mark.parametrize("prefix", ["always", "when-needed", "never"])
async def test_a_pages_uri_is_the_same_whatever_else_there_is(router: Any, fake_upstream: Any, prefix: str):
    for upstreams in (("a",), ("a", "b")):
        gateway = router(*(clock(fake_upstream, name) for name in upstreams), prefix=prefix)
        tools = (await gateway.respond("tools/list", {}, HOST))["tools"]
        assert tools[0]["_meta"]["ui"]["resourceUri"] == "ui://a/clock/app.html"


async def test_a_page_reads_by_the_uris_of_its_own_server_too(router: Any, fake_upstream: Any):
    gateway = router(clock(fake_upstream, "a"), clock(fake_upstream, "b"))
    await read(gateway, "ui://b/clock/app.html")
    [content] = (await read(gateway, PAGE))["contents"]
    assert content["uri"] == PAGE
    assert content["text"] == "<p>b"
    assert (await read(gateway, PAGE, OTHER))["contents"][0]["text"] == "<p>a"


async def test_a_uri_that_begins_with_the_name_of_an_upstream_is_still_found(router: Any, fake_upstream: Any):
    gateway = router(clock(fake_upstream, "clock"))
    assert (await read(gateway, "ui://clock/clock/app.html"))["contents"][0]["uri"] == "ui://clock/clock/app.html"
    assert (await read(gateway, PAGE))["contents"][0]["text"] == "<p>clock"
    with pytest.raises(UnknownResource):
        await read(gateway, "ui://clock/other")


async def test_a_watched_page_is_told_of_by_the_uri_that_the_host_knows(router: Any, fake_upstream: Any):
    watched: list[str] = []

    async def subscribe(uri: str, caller: Any) -> Any:
        watched.append(uri)
        return lambda: None

    a, b = clock(fake_upstream, "a"), clock(fake_upstream, "b")
    a.subscribe = b.subscribe = subscribe
    gateway = router(a, b)
    told: list[str] = []
    gateway.subscribe(lambda change: told.append(change.kind))
    await gateway.watch("ui://b/clock/app.html", HOST)
    gateway.upstream_changed("b", f"updated:{PAGE}")
    assert watched == [PAGE]
    assert "updated:ui://b/clock/app.html" in told
    assert "updated:ui://a/clock/app.html" not in told


async def test_results_name_pages_by_the_uris_that_can_be_read(router: Any, fake_upstream: Any):
    link = {"type": "resource_link", "uri": PAGE, "name": "page", "_meta": {"ui": {"csp": {}}}}

    def answer(method: str, params: Any) -> Any:
        return {"content": [link], "_meta": {"ui": {"resourceUri": PAGE}}}

    gateway = router(fake_upstream("a", [SHOW, REFRESH], answer=answer))
    for name in ("a__show", "a__refresh", "refresh"):
        result = await call(gateway, name)
        assert result["_meta"]["ui"]["resourceUri"] == "ui://a/clock/app.html"
        assert result["content"] == [{**link, "uri": "ui://a/clock/app.html"}]


async def test_prompts_name_pages_by_the_uris_that_can_be_read(router: Any, fake_upstream: Any):
    link = {"type": "resource_link", "uri": PAGE, "name": "page"}
    page = {"type": "resource", "resource": {"uri": PAGE, "mimeType": "text/html", "text": "<p>", "_meta": {"k": None}}}
    note = {"role": "user", "content": {"type": "resource", "resource": {"uri": "note://x", "text": "x"}}}

    def answer(method: str, params: Any) -> Any:
        if method == "resources/read":
            return serving("a")(method, params)
        return {"messages": [{"role": "user", "content": link}, {"role": "user", "content": page, "later": 1}, note]}

    gateway = router(fake_upstream("a", [SHOW], prompt_list=[{"name": "review"}], answer=answer))
    result = await gateway.respond("prompts/get", {"name": "a__review"}, HOST)
    first, second, third = result["messages"]
    assert first["content"] == {**link, "uri": "ui://a/clock/app.html"}
    assert second["later"] == 1
    assert second["content"]["resource"] == {**page["resource"], "uri": "ui://a/clock/app.html"}
    assert third == note
    assert (await read(gateway, second["content"]["resource"]["uri"]))["contents"][0]["text"] == "<p>a"


@pytest.mark.parametrize(("caller", "embedded"), [(HOST, "always"), (BLIND, "never")], ids=["shows", "blind"])
async def test_a_page_inside_a_result_goes_to_hosts_that_show_pages(
    router: Any, fake_upstream: Any, shaper: Any, caller: Caller, embedded: str
):
    gateway = router(fake_upstream("a", [PLAIN]), shaper=shaper)
    await call(gateway, "a__plain", caller)
    assert [profile.apps.embedded for profile in shaper.shaped_for] == [embedded]


async def test_a_completion_for_a_pages_template_goes_to_its_upstream_under_its_own_uri(
    router: Any, fake_upstream: Any
):
    template = {"uriTemplate": "ui://x/{y}", "name": "t"}
    b = fake_upstream("b", template_list=[template], offers=("completions",), answer=lambda *_: {"completion": {}})
    gateway = router(fake_upstream("a", template_list=[template], offers=("completions",)), b)
    asked = {"ref": {"type": "ref/resource", "uri": "ui://b/x/{y}"}, "argument": {"name": "y", "value": ""}}
    await gateway.respond("completion/complete", asked, HOST)
    assert b.asked[0][1]["ref"] == {"type": "ref/resource", "uri": "ui://x/{y}"}


async def test_a_page_of_an_upstream_that_still_starts_is_waited_for(router: Any, fake_upstream: Any):
    late = clock(fake_upstream, "late", state=UpstreamState.STARTING)
    gateway = router(late, profile="codex")
    read_late: list[Any] = []

    async def ask() -> None:
        read_late.append(await read(gateway, "ui://late/clock/app.html"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        with anyio.fail_after(60):
            while not late.awaited:
                await anyio.lowlevel.checkpoint()
        assert late.asked == []
        late.become(UpstreamState.READY)
    assert read_late[0]["contents"][0]["text"] == "<p>late"


async def test_without_prefixes_a_tool_for_pages_alone_is_that_of_the_page_that_is_open(
    router: Any, fake_upstream: Any
):
    gateway = router(clock(fake_upstream, "a"), clock(fake_upstream, "b"), prefix="never")
    assert says(await call(gateway, "refresh")) == "refresh of a"
    await read(gateway, "ui://b/clock/app.html")
    assert says(await call(gateway, "refresh")) == "refresh of b"
    assert says(await call(gateway, "plain")) == "plain of a"  # the model knows it by this name


async def test_no_upstream_takes_over_a_uri_with_anothers_name_in_front(router: Any, fake_upstream: Any):
    claims = {"ui": {"resourceUri": "ui://b/clock/hidden"}}
    evil = fake_upstream(
        "evil",
        [{**PLAIN, "_meta": claims}],
        resource_list=[{"uri": "ui://b/clock/hidden", "name": "x"}],
        answer=lambda *_: {"contents": [{"uri": "ui://b/clock/hidden", "text": "evil"}]},
    )
    unlisted = fake_upstream("b", answer=lambda method, params: {"contents": [{"uri": params["uri"], "text": "b"}]})
    gateway = router(evil, unlisted)
    await call(gateway, "evil__plain")
    [content] = (await read(gateway, "ui://b/clock/hidden"))["contents"]
    assert content == {"uri": "ui://b/clock/hidden", "text": "b"}

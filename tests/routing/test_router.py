import logging
import threading
from dataclasses import replace
from typing import Any

import anyio
import pytest
from anyio import from_thread

from gateway.config.upstream_settings import Timeouts, ToolsSettings, ToolTimeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.core.model.grant import Grant
from gateway.core.tools.catalogue import faults
from gateway.errors import (
    InvalidRequest,
    ProfileError,
    UnknownMethod,
    UnknownResource,
    UnknownTool,
    UpstreamRefused,
    UpstreamUnavailable,
)
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"x": {"type": "number"}}}
MODERN = Caller(revision="2026-07-28", client_name="codex-mcp-client")
PLAIN = Caller(revision="2025-11-25")


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": SCHEMA, **members}


def names(result: dict[str, Any]) -> list[str]:
    return [each["name"] for each in result["tools"]]


# -- tools/list ---------------------------------------------


async def test_each_caller_gets_the_catalogue_of_its_own_profile(router: Any, fake_upstream: Any):
    charts = fake_upstream("charts", [tool("draw", outputSchema={"type": "object"})])
    gateway = router(charts)
    plain = await gateway.respond("tools/list", {}, PLAIN)
    codex = await gateway.respond("tools/list", {}, MODERN)
    viewer = await gateway.respond("tools/list", {}, Caller(revision="2025-11-25", profile="viewer"))
    assert "outputSchema" not in plain["tools"][0]
    assert "outputSchema" in codex["tools"][0]
    assert names(viewer) == ["gateway_view", "charts__draw"]


async def test_a_revision_without_structured_content_gets_no_output_schemas(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts", [tool("draw", outputSchema={"type": "object"})]))
    old = await gateway.respond("tools/list", {}, Caller(revision="2025-03-26", client_name="codex"))
    assert "outputSchema" not in old["tools"][0]


async def test_a_changed_list_is_seen_by_the_next_request_and_told_to_listeners(router: Any, fake_upstream: Any):
    charts = fake_upstream("charts", [tool("draw")])
    gateway = router(charts)
    heard: list[str] = []
    unsubscribe = gateway.subscribe(lambda change: heard.append(change.kind))
    assert names(await gateway.respond("tools/list", {}, PLAIN)) == ["charts__draw"]
    charts.tool_list = [tool("draw"), tool("paint")]
    gateway.upstream_changed("charts", "tools")
    gateway.upstream_changed("charts", "state")
    gateway.upstream_changed("charts", "resources")
    assert names(await gateway.respond("tools/list", {}, PLAIN)) == ["charts__draw", "charts__paint"]
    unsubscribe()
    unsubscribe()
    gateway.upstream_changed("charts", "tools")
    assert heard == ["tools", "resources"]


async def test_a_listener_that_fails_keeps_nothing_from_the_others(
    router: Any, fake_upstream: Any, caplog: pytest.LogCaptureFixture
):
    gateway = router(fake_upstream("charts"))
    heard: list[str] = []

    def broken(kind: str) -> None:
        raise RuntimeError(kind)

    gateway.subscribe(broken)
    gateway.subscribe(lambda change: heard.append(change.kind))
    gateway.upstream_changed("charts", "tools")
    assert heard == ["tools"]
    assert "a listener failed" in caplog.text


async def test_a_list_waits_for_an_upstream_that_is_still_starting(router: Any, fake_upstream: Any):
    slow = fake_upstream("slow")
    slow.state = UpstreamState.STARTING
    gateway = router(slow, fake_upstream("quick", [tool("now")]))
    found: list[list[str]] = []

    async def ask() -> None:
        found.append(names(await gateway.respond("tools/list", {}, MODERN)))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            assert found == []
            slow.tool_list = [tool("late")]
            slow.become(UpstreamState.READY)
    assert found == [["slow__late", "quick__now"]]


async def test_an_upstream_that_did_not_come_in_time_is_waited_for_once_only(router: Any, fake_upstream: Any):
    slow = fake_upstream("slow")
    slow.state = UpstreamState.STARTING
    gateway = router(slow, fake_upstream("quick", [tool("now")]))
    with anyio.fail_after(10):
        for _ in range(3):
            assert names(await gateway.respond("tools/list", {}, PLAIN)) == ["quick__now"]
    assert slow.awaited == 1


@pytest.mark.parametrize("method", ["tools/list", "prompts/list", "resources/list", "resources/templates/list"])
async def test_a_list_that_has_waited_longer_before_it_came_here_is_answered_at_once(
    router: Any, fake_upstream: Any, method: str
):
    slow = fake_upstream("slow")
    slow.state = UpstreamState.STARTING
    gateway = router(slow, fake_upstream("quick", [tool("now")]))
    hurried = Caller(revision="2025-11-25", profile="hurried")
    with anyio.fail_after(30):
        result = await gateway.respond(method, {}, hurried, waited=61.0)
    assert method != "tools/list" or names(result) == ["quick__now"]


async def test_a_host_without_a_known_limit_is_given_the_whole_list_however_long_its_request_has_waited(
    router: Any, fake_upstream: Any
):
    slow = fake_upstream("slow")
    slow.state = UpstreamState.STARTING
    gateway = router(slow)
    found: list[list[str]] = []

    async def ask() -> None:
        found.append(names(await gateway.respond("tools/list", {}, MODERN, waited=61.0)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            slow.tool_list = [tool("late")]
            slow.become(UpstreamState.READY)
    assert found == [["slow__late"]]


async def test_lists_are_one_page(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts", [tool(f"t{index}") for index in range(300)]))
    assert len((await gateway.respond("tools/list", {"cursor": None}, PLAIN))["tools"]) == 300
    for method in ("tools/list", "resources/list", "resources/templates/list"):
        with pytest.raises(InvalidRequest):
            await gateway.respond(method, {"cursor": "2"}, PLAIN)


async def test_schemas_with_headers_are_found_by_whoever_was_offered_the_tool(router: Any, fake_upstream: Any):
    schema = {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    gateway = router(fake_upstream("charts", [tool("draw", inputSchema=schema), tool("plain")]))
    granted = replace(PLAIN, grant=Grant(tools=("charts__plain",)))

    def found(caller: Caller, name: str = "charts__draw") -> Any:
        return gateway.header_schema(name, lambda: caller)

    assert found(PLAIN) is None
    for caller in (PLAIN, granted):
        await gateway.respond("tools/list", {}, caller)
    assert found(PLAIN) == schema
    assert found(PLAIN, "charts__plain") is None
    assert found(granted) is None
    assert found(replace(PLAIN, profile="gone")) is None
    gateway.upstream_changed("charts", "tools")
    assert found(PLAIN) is None


async def test_the_catalogue_of_a_caller_says_what_was_changed(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts", [tool("draw", outputSchema=SCHEMA), {"name": "broken"}]))
    catalogue = gateway.catalogue(PLAIN)
    assert [note.kind for note in catalogue.notes] == ["dropped", "schema"]
    assert len(catalogue.problems) == 1


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What the schemas that are judged have as their title, and in which thread each is, as often as it is."""
    found: list[tuple[str, int]] = []
    judge = faults.faults

    def noted(schema: Any) -> Any:
        found.append((schema.get("title", ""), threading.get_ident()))
        return judge(schema)

    monkeypatch.setattr(faults, "faults", noted)
    return found


def titled(count: int, size: int = 0) -> list[dict[str, Any]]:
    """Tools, each with a schema of its own that has a title, and of at least so many characters."""
    return [tool(f"t{n}", inputSchema={**SCHEMA, "title": f"s{n}", "description": "d" * size}) for n in range(count)]


@pytest.mark.parametrize("size", [0, 20_000], ids=["small", "large"])
async def test_a_schema_is_judged_once_for_all_profiles_and_again_when_the_list_has_changed(
    router: Any, fake_upstream: Any, judged: list[tuple[str, int]], size: int
):
    charts = fake_upstream("charts", titled(3, size))
    gateway = router(charts)

    async def judged_for_all() -> list[str]:
        for name in ("default", "codex", "few", "strict", "strict-chat"):
            listed = await gateway.respond("tools/list", {}, Caller(revision="2025-11-25", profile=name))
            assert len(listed["tools"]) == 3
        return sorted(title for title, _ in judged if title)

    assert await judged_for_all() == ["s0", "s1", "s2"]
    charts.tool_list = titled(3, size)
    gateway.upstream_changed("charts", "tools")
    assert await judged_for_all() == ["s0", "s0", "s1", "s1", "s2", "s2"]


@pytest.mark.parametrize(
    ("tools", "is_beside"),
    [(titled(3), False), (titled(1, 40_000), True), (titled(300, 100), True)],
    ids=["small", "one large", "many"],
)
async def test_a_large_list_is_judged_beside_the_loop_and_a_small_one_at_once(
    router: Any, fake_upstream: Any, judged: list[tuple[str, int]], tools: Any, is_beside: bool
):
    gateway = router(fake_upstream("charts", tools))
    await gateway.respond("tools/list", {}, PLAIN)
    threads = [thread for title, thread in judged if title]
    assert len(threads) == len(tools)
    assert (threading.get_ident() not in threads) is is_beside


SCOPED = Caller(revision="2025-11-25", grant=Grant(scoped=(("charts__*", ("draw",)),)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda gateway: gateway.respond("tools/call", {"name": "charts__t0"}, PLAIN),
        lambda gateway: gateway.respond("prompts/get", {"name": "charts__x"}, replace(PLAIN, profile="viewer")),
        lambda gateway: gateway.check_scopes({"name": "nothing"}, SCOPED),
        lambda gateway: gateway.state_of({"name": "charts__t0"}, PLAIN),
    ],
    ids=["call", "prompt", "scopes", "state"],
)
async def test_nothing_that_a_host_asks_judges_a_large_list_on_the_loop(
    router: Any, fake_upstream: Any, judged: list[tuple[str, int]], ask: Any
):
    charts = fake_upstream("charts", titled(3, 20_000), prompt_list=[{"name": "x"}])
    await ask(router(charts))
    assert sorted(title for title, _ in judged if title) == ["s0", "s1", "s2"]
    assert threading.get_ident() not in {thread for _, thread in judged}


async def test_a_large_list_that_changes_all_the_time_is_answered_and_never_holds_the_loop(
    router: Any, fake_upstream: Any, judged: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
):
    charts = fake_upstream("charts", titled(3, 20_000))
    gateway = router(charts)
    judge = faults.faults

    def announced(schema: Any) -> Any:
        from_thread.run_sync(gateway.upstream_changed, "charts", "tools")
        return judge(schema)

    monkeypatch.setattr(faults, "faults", announced)
    listed = await gateway.respond("tools/list", {}, PLAIN)
    assert len(listed["tools"]) == 3
    assert threading.get_ident() not in {thread for _, thread in judged}
    charts.tool_list = titled(2, 20_000)
    assert len((await gateway.respond("tools/list", {}, PLAIN))["tools"]) == 2, "it was not kept"


async def test_tools_left_out_are_reported_once(router: Any, fake_upstream: Any, caplog: pytest.LogCaptureFixture):
    gateway = router(fake_upstream("charts", [{"name": "x\x1b[2J"}, tool("draw")]))
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            gateway.upstream_changed("charts", "tools")
            await gateway.respond("tools/list", {}, PLAIN)
    assert caplog.text.count("withheld") == 1
    assert "\x1b" not in caplog.text


# -- tools/call ---------------------------------------------


async def test_a_call_goes_to_its_upstream_under_its_own_name_and_comes_back_shaped(router: Any, fake_upstream: Any):
    renamed = UpstreamSettings(command="x", tools=ToolsSettings(rename={"draw": "chart"}))
    charts = fake_upstream("charts", [tool("draw")], settings=renamed)
    gateway = router(charts, fake_upstream("other", [tool("draw")]))
    arguments = {"x": 1, "nested": {"y": [None, True]}}
    result = await gateway.respond("tools/call", {"name": "charts__chart", "arguments": arguments}, MODERN)
    assert result == {"content": [{"type": "text", "text": "ok"}], "shaped": ["codex", "local"]}
    assert charts.asked == [("tools/call", {"name": "draw", "arguments": arguments}, Timeouts())]
    assert charts.asked[0][1]["arguments"] is arguments


async def test_what_belongs_to_the_hosts_own_connection_goes_no_further(router: Any, fake_upstream: Any):
    charts = fake_upstream("charts", [tool("draw")])
    meta = {
        "progressToken": 7,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "x"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "traceparent": "00-1-2-01",
    }
    call = {"name": "charts__draw", "arguments": None, "task": {"ttl": 1}, "_meta": meta}
    gateway = router(charts)
    await gateway.respond("tools/call", call, PLAIN)
    await gateway.respond("tools/call", {"name": "charts__draw", "_meta": {"progressToken": 7}}, PLAIN)
    assert [params for _, params, _ in charts.asked] == [
        {"name": "draw", "_meta": {"traceparent": "00-1-2-01"}},
        {"name": "draw"},
    ]


async def test_limits_of_one_tool_replace_those_of_its_upstream(router: Any, fake_upstream: Any):
    settings = UpstreamSettings(
        command="x", timeout=Timeouts(call=9), tools=ToolsSettings(timeout={"slow": ToolTimeouts(idle=500)})
    )
    charts = fake_upstream("charts", [tool("slow"), tool("draw")], settings=settings)
    gateway = router(charts)
    for name in ("charts__slow", "charts__draw"):
        await gateway.respond("tools/call", {"name": name}, PLAIN)
    assert [(limits.call, limits.idle) for _, _, limits in charts.asked] == [(9, 500), (9, 120)]


async def test_progress_of_the_upstream_reaches_whoever_called(router: Any, fake_upstream: Any):
    heard: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    gateway = router(fake_upstream("charts", [tool("draw")]))
    await gateway.respond("tools/call", {"name": "charts__draw"}, PLAIN, on_progress=on_progress)
    assert heard == [(1.0, 2.0, "half")]


async def test_calls_run_side_by_side(router: Any, fake_upstream: Any):
    met = anyio.Event()

    async def wait() -> dict[str, Any]:
        await met.wait()
        return {"content": []}

    async def meet() -> dict[str, Any]:
        met.set()
        return {"content": []}

    first = fake_upstream("first", [tool("x")], answer=lambda method, params: wait())
    second = fake_upstream("second", [tool("x")], answer=lambda method, params: meet())
    gateway = router(first, second)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gateway.respond, "tools/call", {"name": "first__x"}, PLAIN)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(gateway.respond, "tools/call", {"name": "second__x"}, PLAIN)


async def test_an_unknown_name_is_answered_with_the_nearest_ones(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts", [tool("draw_chart"), tool("zzz")]))
    with pytest.raises(UnknownTool) as caught:
        await gateway.respond("tools/call", {"name": "charts__draw_charts\x1b[2J"}, PLAIN)
    assert "charts__draw_chart" in caught.value.message
    assert "zzz" not in caught.value.message
    assert "\x1b" not in caught.value.message


async def test_an_upstreams_own_name_is_answered_with_the_one_here_before_any_that_is_only_like_it(
    router: Any, fake_upstream: Any
):
    everything = fake_upstream("everything", [tool("get-tiny-image")])
    gateway = router(fake_upstream("get", [tool("tiny-image")]), everything)
    with pytest.raises(UnknownTool) as caught:
        await gateway.respond("tools/call", {"name": "get-tiny-image"}, PLAIN)
    named = "there is no tool named 'get-tiny-image'; here it is called"
    assert caught.value.message == f"{named} 'everything__get-tiny-image'"
    gateway = router(everything, fake_upstream("other", [tool("get-tiny-image")]))
    with pytest.raises(UnknownTool) as caught:
        await gateway.respond("tools/call", {"name": "get-tiny-image"}, PLAIN)
    assert caught.value.message == f"{named} 'everything__get-tiny-image' or 'other__get-tiny-image'"


async def test_a_name_of_a_megabyte_is_unknown_like_any_other(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts", [tool("draw")]))
    with anyio.fail_after(30), pytest.raises(UnknownTool) as caught:
        await gateway.respond("tools/call", {"name": "x" * 1_000_000}, PLAIN)
    assert len(caught.value.message) < 500


async def test_a_tool_of_an_upstream_that_is_down_names_the_cause_and_what_to_do(router: Any, fake_upstream: Any):
    charts = fake_upstream("charts", cause="no such file: draw.py")
    charts.state = UpstreamState.FAILED
    gateway = router(charts, fake_upstream("other", [tool("x")]))
    with pytest.raises(UpstreamUnavailable) as caught:
        await gateway.respond("tools/call", {"name": "charts__draw"}, PLAIN)
    assert "no such file: draw.py" in caught.value.message
    assert caught.value.remedy == (
        "the gateway keeps trying; see upstreams.charts in the configuration, or run mcp-gateway doctor"
    )
    with pytest.raises(UnknownTool) as unknown:
        await gateway.respond("tools/call", {"name": "draw"}, PLAIN)
    assert "charts (failed: no such file: draw.py)" in unknown.value.message


async def test_a_call_waits_for_the_upstream_that_its_name_belongs_to(router: Any, fake_upstream: Any):
    slow, hanging = fake_upstream("slow"), fake_upstream("hanging")
    slow.state = hanging.state = UpstreamState.STARTING
    gateway = router(hanging, slow)
    results: list[Any] = []

    async def call() -> None:
        results.append(await gateway.respond("tools/call", {"name": "slow__late"}, MODERN))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            slow.tool_list = [tool("late")]
            slow.become(UpstreamState.READY)
            gateway.upstream_changed("slow", "tools")
    assert results[0]["shaped"] == ["codex", "local"]
    assert hanging.awaited == 0


async def test_a_result_over_the_limit_becomes_an_error_that_names_both_sizes(router: Any, fake_upstream: Any):
    answer = {"content": [{"type": "text", "text": "x" * 3_000}], "structuredContent": {"y": ["z" * 2_000]}}
    gateway = router(fake_upstream("charts", [tool("draw")], answer=lambda method, params: answer))
    result = await gateway.respond("tools/call", {"name": "charts__draw"}, PLAIN)
    assert result["isError"] is True
    assert "5.0 KB" in result["content"][0]["text"]
    assert "1.0 KB" in result["content"][0]["text"]
    assert len(str(result)) < 500


async def test_an_upstreams_own_error_is_passed_on_as_it_is(router: Any, fake_upstream: Any):
    def refuse(method: str, params: Any) -> Any:
        raise UpstreamRefused("charts", -32099, "no", {"detail": 1})

    gateway = router(fake_upstream("charts", [tool("draw")], answer=refuse))
    with pytest.raises(UpstreamRefused) as caught:
        await gateway.respond("tools/call", {"name": "charts__draw"}, PLAIN)
    assert caught.value.wire() == {"code": -32099, "message": "no", "data": {"detail": 1}}


@pytest.mark.parametrize(
    ("arguments", "closed", "hint"),
    [
        ({"colour": "red"}, {}, "['colour' is not an argument of draw by its schema: did you mean 'color'?]"),
        ({"zebra": 1}, {}, None),
        ({"color": "red"}, {}, None),
        ({"colour": "red"}, {"additionalProperties": True}, None),
        ({"colour": "red"}, {"anyOf": [{"required": ["color"]}]}, None),
    ],
)
async def test_a_tools_error_names_the_argument_that_was_probably_meant(
    router: Any, fake_upstream: Any, arguments: dict[str, Any], closed: dict[str, Any], hint: str | None
):
    schema = {"type": "object", "properties": {"color": {"type": "string"}}, **closed}
    charts = fake_upstream("charts", [tool("draw", inputSchema=schema)])
    gateway = router(charts)
    failed = {"content": [{"type": "text", "text": "bad input"}], "isError": True}
    charts.answer = lambda method, params: failed
    params = {"name": "charts__draw", "arguments": arguments}
    result = await gateway.respond("tools/call", params, MODERN)
    assert [block["text"] for block in result["content"]] == ["bad input", *([] if hint is None else [hint])]
    charts.answer = lambda method, params: {"content": [{"type": "text", "text": "fine"}]}
    assert len((await gateway.respond("tools/call", params, MODERN))["content"]) == 1


async def test_the_gateways_own_tools_are_called_for_the_caller_and_only_where_offered(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts"))
    viewer = Caller(revision="2025-11-25", profile="viewer", principal="ann")
    result = await gateway.respond("tools/call", {"name": "gateway_view"}, viewer)
    assert result["content"][0]["text"] == "gateway_view for ann, viewer"
    assert result["shaped"] == ["viewer", "ann"]
    with pytest.raises(UnknownTool):
        await gateway.respond("tools/call", {"name": "gateway_view"}, PLAIN)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": 3}),
        ("tools/call", {"name": "charts__draw", "arguments": []}),
        ("resources/read", {}),
        ("resources/read", {"uri": ""}),
        ("resources/read", {"uri": ["x"]}),
    ],
)
async def test_malformed_requests_are_invalid(router: Any, fake_upstream: Any, method: str, params: Any):
    gateway = router(fake_upstream("charts", [tool("draw")]))
    with pytest.raises(InvalidRequest):
        await gateway.respond(method, params, PLAIN)


async def test_a_method_that_is_not_served_says_so(router: Any, fake_upstream: Any):
    with pytest.raises(UnknownMethod):
        await router(fake_upstream("charts")).respond("tools/paint", {}, PLAIN)


# -- profiles ---------------------------------------------


async def test_the_explicit_choice_wins_over_the_configured_one_and_that_over_the_clients_name(
    router: Any, fake_upstream: Any
):
    gateway = router(fake_upstream("charts"), profile="viewer")
    assert gateway.profile_of(Caller(client_name="codex")).name == "viewer"
    assert gateway.profile_of(Caller(client_name="codex", profile="default")).name == "default"
    assert router(fake_upstream("charts")).profile_of(Caller(client_name="Codex")).name == "codex"
    with pytest.raises(ProfileError):
        await gateway.respond("tools/list", {}, Caller(profile="no-such"))


async def test_a_client_that_is_told_by_a_header_is_told_on_each_request(router, fake_upstream):
    gateway = router(fake_upstream("charts"))
    sent = {"x-mine-user": "1"}
    for _ in range(2):  # the second time, the choice is remembered
        assert gateway.profile_of(Caller(client_name="mcp")).name == "default"
        assert gateway.profile_of(Caller(client_name="mcp", headers=sent)).name == "told-by-header"
        assert gateway.profile_of(Caller(client_name="mcp", headers={"x-other": "1"})).name == "default"


async def test_the_choice_of_a_profile_is_logged_once_per_client(
    router: Any, fake_upstream: Any, caplog: pytest.LogCaptureFixture
):
    gateway = router(fake_upstream("charts", [tool("draw")]))
    strange = Caller(client_name="x\n\x1b[2J" + "y" * 10_000)
    with caplog.at_level(logging.INFO, logger="gateway.routing.profile_choices"):
        for _ in range(3):
            for caller in (PLAIN, MODERN, strange):
                await gateway.respond("tools/list", {}, caller)
    assert len(caplog.records) == 3
    assert "\x1b" not in caplog.text
    assert max(len(record.getMessage()) for record in caplog.records) < 600


async def test_many_strange_clients_cost_no_more_memory_than_few(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts"))
    for index in range(2_000):
        gateway.profile_of(Caller(client_name=f"client {index}"))
    assert gateway.profile_of(Caller(client_name="codex")).name == "codex"
    assert len(gateway._profiles._chosen) <= 512


# -- resources ---------------------------------------------


def of(owner: str) -> Any:
    return lambda method, params: {"contents": [{"uri": params["uri"], "text": owner, "extra": 1}]}


def refusing(code: int) -> Any:
    def answer(method: str, params: Any) -> Any:
        raise UpstreamRefused("x", code, "Unknown resource")

    return answer


async def test_resources_of_all_upstreams_and_stored_content_are_one_list(router: Any, fake_upstream: Any):
    first = {"uri": "file:///a", "name": "a", "_meta": {"k": 1}, "future": True}
    upstreams = (
        fake_upstream("one", resource_list=[first, {"uri": 3, "name": "x"}, {"uri": "file:///b"}, "no object"]),
        fake_upstream("two", resource_list=[{"uri": "file:///a", "name": "other"}, {"uri": "ui://c", "name": "c"}]),
    )
    result = await router(*upstreams).respond("resources/list", {}, Caller(principal="ann"))
    page = {"uri": "ui://two/c", "name": "c"}
    assert result["resources"] == [first, page, {"uri": "content://of-ann", "name": "ann"}]


async def test_templates_are_one_list_and_malformed_members_cost_nobody_the_list(router: Any, fake_upstream: Any):
    broken = {"uriTemplate": "db://{table}", "name": "t\x1b", "mimeType": None, "description": 4, "size": -1}
    templates = [{"uriTemplate": "db://{table}", "name": "again"}]
    upstreams = fake_upstream("one", template_list=[broken]), fake_upstream("two", template_list=templates)
    result = await router(*upstreams).respond("resources/templates/list", {}, PLAIN)
    assert result == {"resourceTemplates": [{"uriTemplate": "db://{table}", "name": "t␛"}]}


async def test_a_listed_uri_is_read_from_the_first_that_lists_it_and_passed_on_unmodified(
    router: Any, fake_upstream: Any
):
    listed = [{"uri": "file:///a", "name": "a"}]
    one, two = (fake_upstream(name, resource_list=listed, answer=of(name)) for name in ("one", "two"))
    result = await router(one, two).respond(
        "resources/read", {"uri": "file:///a", "_meta": {"progressToken": 1}}, PLAIN
    )
    assert result == {"contents": [{"uri": "file:///a", "text": "one", "extra": 1}]}
    assert one.asked[0][:2] == ("resources/read", {"uri": "file:///a"})
    assert two.asked == []


async def test_an_error_of_the_upstream_that_lists_the_uri_is_the_answer(router: Any, fake_upstream: Any):
    listed = [{"uri": "file:///a", "name": "a"}]
    one = fake_upstream("one", resource_list=listed, answer=refusing(-32002))
    two = fake_upstream("two", resource_list=[{"uri": "file:///b", "name": "b"}], answer=of("two"))
    with pytest.raises(UpstreamRefused):
        await router(one, two).respond("resources/read", {"uri": "file:///a"}, PLAIN)
    assert two.asked == []


async def test_a_uri_that_nobody_lists_is_asked_for_by_template_and_then_of_everybody(router: Any, fake_upstream: Any):
    template = [{"uriTemplate": "db://{table}/{row}", "name": "t"}]
    one = fake_upstream("one", resource_list=[{"uri": "x://", "name": "x"}], answer=of("one"))
    two = fake_upstream("two", template_list=template, answer=of("two"))
    none = fake_upstream("none", answer=of("none"))
    gateway = router(none, one, two)
    by_template = await gateway.respond("resources/read", {"uri": "db://users/3"}, PLAIN)
    by_asking = await gateway.respond("resources/read", {"uri": "mem://3"}, PLAIN)
    assert by_template["contents"][0]["text"] == "two"
    assert by_asking["contents"][0]["text"] == "one"
    assert none.asked == []


@pytest.mark.parametrize("code", [-32002, -32602, -32601, 0])
async def test_one_that_has_it_not_is_followed_by_the_next(router: Any, fake_upstream: Any, code: int):
    listed = [{"uri": "x://", "name": "x"}]
    one = fake_upstream("one", resource_list=listed, answer=refusing(code))
    two = fake_upstream("two", resource_list=listed, answer=of("two"))
    result = await router(one, two).respond("resources/read", {"uri": "mem://3"}, PLAIN)
    assert result["contents"][0]["text"] == "two"


async def test_what_nobody_has_is_unknown_and_what_could_not_be_asked_is_named(router: Any, fake_upstream: Any):
    def gone(method: str, params: Any) -> Any:
        raise UpstreamUnavailable("two", "it ended")

    listed = [{"uri": "x://", "name": "x"}]
    one = fake_upstream("one", resource_list=listed, answer=refusing(-32002))
    two = fake_upstream("two", resource_list=listed, answer=gone)
    with pytest.raises(UnknownResource) as caught:
        await router(one, two).respond("resources/read", {"uri": "mem://3\x1b"}, PLAIN)
    assert "it ended" in caught.value.message
    assert "\x1b" not in caught.value.message


async def test_a_uri_that_a_result_named_is_read_from_whoever_named_it(router: Any, fake_upstream: Any):
    link = {"type": "resource_link", "uri": "tmp://made", "name": "made"}
    embedded = {"type": "resource", "resource": {"uri": "tmp://in", "text": "x"}}

    def answer(method: str, params: Any) -> Any:
        return {"content": [link, embedded]} if method == "tools/call" else of("two")(method, params)

    one = fake_upstream("one", resource_list=[{"uri": "x://", "name": "x"}], answer=of("one"))
    gateway = router(one, fake_upstream("two", [tool("make")], answer=answer))
    await gateway.respond("tools/call", {"name": "two__make"}, PLAIN)
    for uri in ("tmp://made", "tmp://in"):
        result = await gateway.respond("resources/read", {"uri": uri}, PLAIN)
        assert result["contents"][0]["text"] == "two"
    assert one.asked == []


async def test_uris_that_results_name_are_kept_in_mind_within_bounds(router: Any, fake_upstream: Any):
    def answer(method: str, params: Any) -> Any:
        if method == "resources/read":
            return of("two")(method, params)
        uris = ["x" * 5_000, *(f"tmp://{number}" for number in range(5_000))]
        return {"content": [{"type": "resource_link", "uri": uri, "name": "n"} for uri in uris]}

    gateway = router(fake_upstream("two", [tool("make")], answer=answer), result_bytes=10_000_000)
    await gateway.respond("tools/call", {"name": "two__make"}, PLAIN)
    assert (await gateway.respond("resources/read", {"uri": "tmp://4999"}, PLAIN))["contents"][0]["text"] == "two"
    for forgotten in ("x" * 5_000, "tmp://0"):
        with pytest.raises(UnknownResource):
            await gateway.respond("resources/read", {"uri": forgotten}, PLAIN)


async def test_stored_content_is_read_by_its_owner_only(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("one"))
    result = await gateway.respond("resources/read", {"uri": "content://of-ann"}, Caller(principal="ann"))
    assert result["contents"][0]["text"] == "stored"
    with pytest.raises(UnknownResource):
        await gateway.respond("resources/read", {"uri": "content://of-ann"}, Caller(principal="bob"))


# -- what profiles know of hosts and of the models behind them ---------------------------------------------

STRICT = Caller(revision="2025-11-25", client_name="strict", capabilities={"sampling": {}, "roots": {}})
EITHER = {"type": "object", "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}


async def test_arguments_that_only_the_shown_schema_takes_are_refused_and_the_upstream_is_not_called(
    router: Any, fake_upstream: Any, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "gateway.telemetry.calls")
    charts = fake_upstream("charts", [tool("draw", inputSchema=EITHER)])
    gateway = router(charts)
    call = {"name": "charts__draw", "arguments": {"z": 1}}
    refused = await gateway.respond("tools/call", call, STRICT)
    assert refused["isError"] is True
    assert "do not fit charts__draw" in refused["content"][0]["text"]
    assert refused["shaped"] == ["strict", "local"]
    assert charts.asked == []
    assert "call charts__draw: invalid in" in caplog.messages[-1]
    assert "; cause the arguments do not fit the tool's input schema" in caplog.messages[-1]
    await gateway.respond("tools/call", {**call, "arguments": {"y": 1}}, STRICT)
    await gateway.respond("tools/call", call, PLAIN)  # its host was shown the schema as it is
    assert [params["arguments"] for _, params, _ in charts.asked] == [{"y": 1}, {"z": 1}]


async def test_what_is_broken_in_a_host_is_told_to_no_upstream(router: Any, fake_upstream: Any):
    charts = fake_upstream("charts", [tool("draw")])
    gateway = router(charts)
    await gateway.respond("tools/call", {"name": "charts__draw"}, STRICT)
    await gateway.respond("tools/call", {"name": "charts__draw"}, replace(STRICT, client_name="other"))
    assert [set(caller.capabilities) for caller, _ in charts.asked_for] == [{"roots"}, {"sampling", "roots"}]
    assert not gateway.hears(STRICT, Change("tools"))
    assert gateway.hears(STRICT, Change("prompts"))
    assert gateway.hears(Caller(profile="gone"), Change("tools"))


async def test_a_result_is_shaped_for_the_model_that_a_call_tells_and_tools_keep_their_names(
    router: Any, fake_upstream: Any
):
    gateway = router(fake_upstream("charts", [tool("Draw.a-long-name")]))
    (listed,) = names(await gateway.respond("tools/list", {}, STRICT))
    for model, profile in (("gpt-4o", "strict-chat"), ("gpt-5.5", "strict"), (None, "strict")):
        result = await gateway.respond("tools/call", {"name": listed}, replace(STRICT, model=model))
        assert result["shaped"][0] == profile


async def test_a_configured_model_decides_for_lists_and_calls(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("charts", [tool("Draw")]), model="gpt-4o")
    assert gateway.profile_of(replace(STRICT, model="gpt-5.5")).name == "strict-chat"
    assert names(await gateway.respond("tools/list", {}, STRICT)) == ["charts___raw"]

"""Prompts and completions: merged, and asked for where they are."""

import logging
import threading
from dataclasses import replace
from typing import Any

import anyio
import pytest

from gateway.config.gateway_settings import GatewaySettings
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.model.grant import Grant
from gateway.core.model.toolset_scope import ToolsetScope
from gateway.core.tools.catalogue import build_prompts
from gateway.errors import InvalidRequest, UnknownPrompt, UpstreamRefused, UpstreamUnavailable
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio

HOST = Caller(revision="2026-07-28", client_name="codex")
PLAIN = Caller(revision="2025-11-25")
NOTHING = {"completion": {"values": [], "total": 0, "hasMore": False}}
RESULT = {"messages": [{"role": "user", "content": {"type": "video", "later": None}}], "later": 1}


def names(result: dict[str, Any]) -> list[str]:
    return [prompt["name"] for prompt in result["prompts"]]


# -- prompts/list ---------------------------------------------


async def test_prompts_are_offered_under_the_names_that_tools_would_have(router: Any, fake_upstream: Any):
    upstreams = [fake_upstream(name, prompt_list=[{"name": "x"}, {"name": name}]) for name in ("a", "b")]
    offered = {
        rule: names(await router(*upstreams, prefix=rule).respond("prompts/list", {}, PLAIN))
        for rule in ("always", "when-needed", "never")
    }
    assert offered == {
        "always": ["a__x", "a__a", "b__x", "b__b"],
        "when-needed": ["a__x", "a", "b__x", "b"],
        "never": ["x", "a", "b__x", "b"],
    }


async def test_a_changed_list_is_seen_at_once_and_told(router: Any, fake_upstream: Any):
    notes = fake_upstream("notes", prompt_list=[{"name": "x"}])
    gateway = router(notes)
    heard: list[str] = []
    gateway.subscribe(lambda change: heard.append(change.kind))
    assert names(await gateway.respond("prompts/list", {}, PLAIN)) == ["notes__x"]
    notes.prompt_list = [{"name": "y"}]
    gateway.upstream_changed("notes", "prompts")
    assert names(await gateway.respond("prompts/list", {}, PLAIN)) == ["notes__y"]
    assert heard == ["prompts"]


async def test_another_prefix_counts_at_once_and_is_told(router: Any, fake_upstream: Any, profiles: Any, shaper: Any):
    gateway = router(fake_upstream("notes", prompt_list=[{"name": "x"}]))
    heard: list[str] = []
    gateway.subscribe(lambda change: heard.append(change.kind))
    await gateway.respond("prompts/list", {}, PLAIN)
    settings = Settings(gateway=GatewaySettings(prefix="never"))
    gateway.reconfigure(settings, profiles, shaper)
    assert names(await gateway.respond("prompts/list", {}, PLAIN)) == ["x"]
    assert heard == ["tools", "prompts"]


@pytest.mark.parametrize(("size", "is_beside"), [(1, False), (4_000, True)], ids=["small", "large"])
async def test_large_lists_of_prompts_are_merged_beside_the_loop_and_once_for_all_who_reach_the_same(
    router: Any, fake_upstream: Any, monkeypatch: pytest.MonkeyPatch, size: int, is_beside: bool
):
    threads: list[int] = []

    def noted(*given: Any) -> Any:
        threads.append(threading.get_ident())
        return build_prompts(*given)

    monkeypatch.setattr("gateway.routing.prompts.build_prompts", noted)
    notes = fake_upstream("notes", prompt_list=[{"name": f"p{n}", "description": "d" * 20} for n in range(size)])
    gateway = router(notes)
    some = replace(PLAIN, grant=Grant(within=(ToolsetScope("one", prompts=("notes__p0",)),)))
    for caller in (PLAIN, some, PLAIN, some):
        listed = await gateway.respond("prompts/list", {}, caller)
        assert len(listed["prompts"]) in (size, 1)
    assert len(threads) == 2
    assert (threading.get_ident() not in threads) is is_beside


async def test_a_list_of_prompts_is_one_page(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("notes", prompt_list=[{"name": str(number)} for number in range(300)]))
    assert len((await gateway.respond("prompts/list", {}, PLAIN))["prompts"]) == 300
    with pytest.raises(InvalidRequest, match="no more pages"):
        await gateway.respond("prompts/list", {"cursor": "2"}, PLAIN)


async def test_what_was_withheld_is_logged_once(router: Any, fake_upstream: Any, caplog: pytest.LogCaptureFixture):
    gateway = router(fake_upstream("notes", prompt_list=[{"name": "x", "arguments": 3}]))
    with caplog.at_level(logging.WARNING):
        for caller in (PLAIN, HOST, PLAIN):
            assert names(await gateway.respond("prompts/list", {}, caller)) == []
    assert len(caplog.records) == 1
    assert "notes: prompt 'x' withheld" in caplog.text


# -- prompts/get ---------------------------------------------


async def test_a_prompt_is_asked_for_by_the_name_that_its_upstream_knows(router: Any, fake_upstream: Any):
    notes = fake_upstream("notes", prompt_list=[{"name": "x y"}], answer=lambda method, params: RESULT)
    gateway = router(notes, fake_upstream("other", prompt_list=[{"name": "x y"}]))
    arguments = {"name": "notes__x y", "arguments": {"a": "b"}, "_meta": {"traceparent": "00", "progressToken": 1}}
    host = object()
    assert await gateway.respond("prompts/get", arguments, HOST, host=host) is RESULT
    (asked,) = notes.asked
    assert asked == (
        "prompts/get",
        {"name": "x y", "arguments": {"a": "b"}, "_meta": {"traceparent": "00"}},
        notes.settings.timeout,
    )
    assert notes.asked_for == [(HOST, host)]


async def test_arguments_that_are_null_are_none(router: Any, fake_upstream: Any):
    notes = fake_upstream("notes", prompt_list=[{"name": "x"}])
    await router(notes).respond("prompts/get", {"name": "notes__x", "arguments": None}, PLAIN)
    assert notes.asked[0][1] == {"name": "x"}


@pytest.mark.parametrize("params", [{}, {"name": 3}, {"name": ""}, {"name": "notes__y"}, {"name": "\x1b[2J"}])
async def test_a_prompt_that_is_nobodys_is_an_invalid_request(router: Any, fake_upstream: Any, params: Any):
    gateway = router(fake_upstream("notes", prompt_list=[{"name": "x"}]))
    with pytest.raises(InvalidRequest) as raised:
        await gateway.respond("prompts/get", params, PLAIN)
    assert type(raised.value) is (UnknownPrompt if params.get("name") in ("notes__y", "\x1b[2J") else InvalidRequest)
    assert "\x1b" not in str(raised.value)
    if params.get("name") == "notes__y":
        assert "the nearest: 'notes__x'" in str(raised.value)


async def test_a_prompt_of_an_upstream_that_is_still_starting_is_waited_for(router: Any, fake_upstream: Any):
    slow = fake_upstream("slow", answer=lambda method, params: RESULT)
    slow.state = UpstreamState.STARTING
    gateway = router(slow)
    found: list[Any] = []

    async def ask() -> None:
        found.append(await gateway.respond("prompts/get", {"name": "slow__x"}, HOST))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            slow.prompt_list = [{"name": "x"}]
            slow.become(UpstreamState.READY)
    assert found == [RESULT]


async def test_a_prompt_of_an_upstream_that_failed_names_the_cause(router: Any, fake_upstream: Any):
    gateway = router(fake_upstream("gone", state=UpstreamState.FAILED, cause="no such file"))
    with pytest.raises(UpstreamUnavailable, match="no such file"):
        await gateway.respond("prompts/get", {"name": "gone__x"}, PLAIN)


# -- completion/complete ---------------------------------------------


def completing(method: str, params: Any) -> Any:
    return {"completion": {"values": ["one"], "later": 1}, "_meta": {"x": 1}}


async def test_a_prompts_argument_is_completed_by_its_upstream(router: Any, fake_upstream: Any):
    notes = fake_upstream("notes", prompt_list=[{"name": "x"}], offers=("completions",), answer=completing)
    params = {
        "ref": {"type": "ref/prompt", "name": "notes__x", "title": "kept"},
        "argument": {"name": "a", "value": "v"},
        "context": {"arguments": {"b": "c"}},
    }
    found = await router(notes).respond("completion/complete", params, HOST)
    assert found == completing("", {})
    assert notes.asked[0][:2] == (
        "completion/complete",
        {**params, "ref": {"type": "ref/prompt", "name": "x", "title": "kept"}},
    )


@pytest.mark.parametrize("uri", ["file:///{path}", "file:///notes/a", "note://listed"])
async def test_a_templates_argument_is_completed_by_whoever_lists_it(router: Any, fake_upstream: Any, uri: str):
    other = fake_upstream("other", template_list=[{"uriTemplate": "http://{x}", "name": "x"}], offers=("completions",))
    files = fake_upstream(
        "files",
        template_list=[{"uriTemplate": "file:///{path}", "name": "x"}],
        resource_list=[{"uri": "note://listed", "name": "x"}],
        offers=("completions",),
        answer=completing,
    )
    params = {"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": "path", "value": ""}}
    assert await router(other, files).respond("completion/complete", params, HOST) == completing("", {})
    assert files.asked[0][1] == params
    assert other.asked == []


async def test_an_upstream_without_completions_has_nothing_to_choose_from(router: Any, fake_upstream: Any):
    notes = fake_upstream("notes", prompt_list=[{"name": "x"}])
    params = {"ref": {"type": "ref/prompt", "name": "notes__x"}, "argument": {"name": "a", "value": ""}}
    assert await router(notes).respond("completion/complete", params, HOST) == NOTHING
    assert notes.asked == []


async def test_an_upstream_from_before_the_capability_is_asked_all_the_same(router: Any, fake_upstream: Any):
    def refusing(method: str, params: Any) -> Any:
        raise UpstreamRefused("notes", -32601, "Method not found")

    params = {"ref": {"type": "ref/prompt", "name": "notes__x"}, "argument": {"name": "a", "value": ""}}
    old = {"prompt_list": [{"name": "x"}], "revision": "2024-11-05"}
    found = router(fake_upstream("notes", answer=completing, **old))
    assert await found.respond("completion/complete", params, HOST) == completing("", {})
    without = router(fake_upstream("notes", answer=refusing, **old))
    assert await without.respond("completion/complete", params, HOST) == NOTHING
    declared = router(fake_upstream("notes", answer=refusing, offers=("completions",), **old))
    with pytest.raises(UpstreamRefused):
        await declared.respond("completion/complete", params, HOST)


@pytest.mark.parametrize(
    ("ref", "named"),
    [
        (None, "ref/prompt"),
        ({"type": "ref/tool", "name": "x"}, "ref/prompt"),
        ({"type": "ref/prompt"}, "ref/prompt"),
        ({"type": "ref/prompt", "name": "nobody"}, "'nobody'"),
        ({"type": "ref/resource", "uri": "no://body"}, "no://body"),
        ({"type": "ref/resource", "uri": 3}, "ref/resource"),
    ],
)
async def test_a_reference_that_is_nobodys_is_named(router: Any, fake_upstream: Any, ref: Any, named: str):
    gateway = router(fake_upstream("notes", prompt_list=[{"name": "x"}], offers=("completions",)))
    with pytest.raises(InvalidRequest, match=named):
        await gateway.respond("completion/complete", {"ref": ref, "argument": {"name": "a", "value": ""}}, PLAIN)

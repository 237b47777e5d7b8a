"""The calls of scripts are calls of their caller: recorded, limited, approved and answered early as those are."""

import json
import logging
from dataclasses import replace

import anyio
import pytest

from gateway.config.access_settings import AccessSettings
from gateway.config.policy_settings import PolicySettings
from gateway.core.model.caller import Caller
from gateway.telemetry.audit.verify import records_of
from gateway.telemetry.requests import new_request
from tests.routing.code_mode.conftest import HOST, texts
from tests.routing.test_approvals import YES, FakeHost

pytestmark = pytest.mark.anyio


async def test_each_is_in_the_audit_trail_and_in_the_log_with_the_script_it_belongs_to(opened, tmp_path, caplog):
    path = tmp_path / "audit.jsonl"
    caplog.set_level(logging.INFO, "gateway.telemetry.calls")
    async with opened({"audit": {"path": path, "arguments": "full"}}) as host:
        with new_request():  # as whatever serves hosts does
            await host.says("browser__words('a')\nbrowser__words('b')")
    calls = [record for record in records_of(path) if record["event"] != "start"]
    assert [(each["tool"], each["outcome"], each["principal"]) for each in calls] == [
        ("words", "ok", "ann"),
        ("words", "ok", "ann"),
        ("gateway_run", "ok", "ann"),
    ]
    assert [each.get("audience") for each in calls] == ["script", "script", None]
    assert len({each["request"] for each in calls}) == 1
    assert [each["arguments"] for each in calls[:2]] == [{"text": "a"}, {"text": "b"}]
    assert [bool(each.get("shown")) for each in calls] == [False, False, True]
    said = [record.message for record in caplog.records if record.message.startswith("call ")]
    assert ["by a script of gateway_run" in line for line in said] == [True, True, False]
    assert "profile claude-code" in said[0]


async def test_they_count_against_the_limits_of_the_caller_but_the_script_holds_only_one_place(opened):
    limits = {"limits": {"calls_per_minute": 4, "calls_at_once": 1}}
    async with opened({"access": AccessSettings.model_validate(limits)}) as host:
        assert await host.says("for i in range(2): browser__words(i=i)\nprint('two')") == "two"
        assert "only 4 tool calls a minute" in await host.fails("browser__words('x')\nbrowser__words('y')")


async def test_a_rule_asks_the_user_from_within_a_script_or_the_call_fails(opened):
    rule = {"name": "ask", "effect": "approve", "tools": ["browser__words"]}
    policy = PolicySettings.model_validate({"rules": [rule]})
    async with opened({"policy": policy}) as host:
        can_ask = host.as_(replace(HOST, capabilities={"elicitation": {"form": {}}}))
        user = FakeHost(YES)
        assert texts(await can_ask.run("browser__words('x')", user)) == '{"text": "x"}'
        assert [method for method, _ in user.asked] == ["elicitation/create"]
        declined = texts(await can_ask.run("browser__words('x')", FakeHost({"action": "decline"})))
        assert "the user declined it" in declined
        assert len(host.calls) == 1
        assert "mcp-gateway approvals approve" in await host.fails("browser__words('x')")
        modern = can_ask.as_(replace(can_ask.caller, revision="2026-07-28"))
        assert "mcp-gateway approvals approve" in await modern.fails("browser__words('x')")
        assert len(host.calls) == 1


async def test_a_script_that_takes_longer_than_its_host_waits_is_answered_early_and_collected(opened):
    early = {"extends": "default", "sets": {"wait": {"call": 1.5, "progress_resets": False}}}
    async with opened({"profiles": {"hasty": early}}) as host:
        hasty = host.as_(replace(HOST, profile="hasty"))
        first = texts(await hasty.run("browser__wait(2.5)\nprint('ended')"))
        assert "gateway_wait" in first, first
        call = first.split("c_", 1)[1].split()[0].strip('".,:;)]')
        said = ""
        with anyio.fail_after(30):
            while "ended" not in said:
                params = {"name": "gateway_wait", "arguments": {"call": f"c_{call}"}}
                said = texts(await hasty.router.respond("tools/call", params, hasty.caller))


async def test_a_toolset_bounds_its_scripts(opened):
    async with opened({"toolsets": {"few": {"tools": ["browser__words"]}}}) as host:
        few = host.as_(replace(HOST, toolsets=("few",)))
        assert "browser__words(" in (await few.tool())["description"]
        assert "browser__report" not in (await few.tool())["description"]
        assert "not defined" in await few.fails("browser__report()")


async def test_two_hosts_run_scripts_at_the_same_time_and_get_their_own(opened):
    async with opened(scripts_at_once=2) as host:
        said: dict[str, str] = {}

        async def run(name: str) -> None:
            caller: Caller = replace(HOST, principal=name, session=name)
            said[name] = await host.as_(caller).says(f"browser__words('{name}')")

        async with anyio.create_task_group() as group:
            for name in ("ann", "bob", "eve", "joe"):
                group.start_soon(run, name)
        assert {name: json.loads(text) for name, text in said.items()} == {name: {"text": name} for name in said}

"""A running gateway takes over other settings: with real upstream processes."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.config.content_settings import LimitSettings
from gateway.config.gateway_settings import GatewaySettings
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import ProfileSource
from gateway.errors import ConfigError, InvalidRequest, ProfileError, UnknownTool
from gateway.runtime import run_gateway

pytestmark = pytest.mark.anyio

SERVERS = Path(__file__).parents[1] / "servers"
HOST = Caller(revision="2025-11-25", client_name="claude-code")
PICTURES = UpstreamSettings(command=sys.executable, args=(str(SERVERS / "pictures_stdio.py"),))


@asynccontextmanager
async def opened(settings, profile=None):
    with anyio.fail_after(60):
        async with run_gateway(settings, profile=profile) as gateway:
            assert await gateway.upstreams.settled(30)
            yield gateway


async def names(gateway, caller=HOST):
    listed = await gateway.router.respond("tools/list", {}, caller)
    return [tool["name"] for tool in listed["tools"] if not tool["name"].startswith("gateway_")]


async def call(gateway, name, caller=HOST):
    return await gateway.router.respond("tools/call", {"name": name, "arguments": {}}, caller)


async def test_hosts_are_told_of_an_upstream_that_comes_and_of_one_that_goes():
    told = []
    async with opened(Settings(upstreams={"one": PICTURES})) as gateway:
        gateway.router.subscribe(lambda change: told.append(change.kind))
        assert (await names(gateway))[0] == "one__picture"
        difference = gateway.apply(Settings(upstreams={"two": PICTURES}))
        assert (difference.added, difference.removed) == (("two",), ("one",))
        assert told == ["tools"]
        assert await gateway.upstreams["two"].ready(30)
        assert told == ["tools", "tools"]
        assert (await names(gateway))[0] == "two__picture"
        assert not (await call(gateway, "two__picture")).get("isError")
        with pytest.raises(UnknownTool):
            await call(gateway, "one__picture")


async def test_prefix_profile_and_limits_are_taken_over_at_once():
    told = []
    async with opened(Settings(upstreams={"one": PICTURES})) as gateway:
        gateway.router.subscribe(lambda change: told.append(change.kind))
        mine = ProfileSource(extends="cline")
        after = Settings(
            gateway=GatewaySettings(prefix="never", profile="mine"),
            limits=LimitSettings(result_bytes=10),
            upstreams={"one": PICTURES},
            profiles={"mine": mine},
        )
        assert gateway.router.profile_of(HOST).name == "claude-code"
        gateway.apply(after)
        assert told == ["tools", "prompts"]
        assert gateway.router.profile_of(HOST).name == "mine"
        assert "mine" in gateway.router.profile_names
        assert (await names(gateway))[0] == "picture"
        assert "a result may have 10 bytes" in (await call(gateway, "picture"))["content"][0]["text"]
        assert gateway.upstreams["one"].counts.restarts == 0
        gateway.apply(Settings(upstreams={"one": PICTURES}))
        asking = Caller(revision="2025-11-25", profile="mine")
        with pytest.raises(ProfileError):
            await names(gateway, asking)


async def test_a_profile_from_the_command_line_stays_in_force():
    async with opened(Settings(), profile="codex") as gateway:
        gateway.apply(Settings(gateway=GatewaySettings(profile="cline")))
        assert gateway.router.profile_of(HOST).name == "codex"


async def test_what_does_not_hold_together_is_refused_as_a_whole():
    async with opened(Settings(upstreams={"one": PICTURES})) as gateway:
        before = gateway.settings
        for broken in (
            Settings(gateway=GatewaySettings(profile="no-such")),
            Settings(profiles={"a": ProfileSource(extends="b"), "b": ProfileSource(extends="a")}),
        ):
            with pytest.raises((ConfigError, ProfileError)):
                gateway.apply(broken)
        assert gateway.settings is before
        assert (await names(gateway))[0] == "one__picture"


async def test_what_needs_a_restart_is_named_and_left_as_it_is():
    async with opened(Settings()) as gateway:
        after = Settings(http=HttpSettings(port=1), gateway=GatewaySettings(name="other"))
        for _ in range(2):
            assert gateway.apply(after).restart_needed == ("gateway.name", "http.port")
        assert gateway.settings == Settings()


async def test_a_call_that_waits_for_an_upstream_finds_it_though_the_settings_change_meanwhile():
    slow = PICTURES.model_copy(update={"args": (*PICTURES.args, "1.5")})
    settings = Settings(upstreams={"one": slow})
    after = Settings(upstreams={"one": slow}, profiles={"mine": ProfileSource(extends="codex")})
    with anyio.fail_after(60):
        async with run_gateway(settings) as gateway, anyio.create_task_group() as tasks:
            answers = []

            async def ask():
                answers.append(await call(gateway, "one__picture"))

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            gateway.apply(after)
        assert answers[0]["content"]


async def test_a_call_for_an_upstream_that_is_taken_out_while_it_starts_says_that_nobody_has_the_tool():
    slow = PICTURES.model_copy(update={"args": (*PICTURES.args, "60")})
    with anyio.fail_after(60):
        async with run_gateway(Settings(upstreams={"one": slow})) as gateway, anyio.create_task_group() as tasks:
            told = []

            async def ask():
                with pytest.raises((UnknownTool, InvalidRequest)) as caught:
                    await call(gateway, "one__picture")
                told.append(str(caught.value))

            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            gateway.apply(Settings())
        assert "there is no tool named 'one__picture'" in told[0]

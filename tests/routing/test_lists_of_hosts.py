"""The lists that each host is shown: those that its own session has, from the first on, and no news that is none."""

import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.profiles.profile import ProfileSource
from gateway.routing import Router
from gateway.runtime import open_gateway
from gateway.upstream import UpstreamState
from gateway.upstream.transports.causes import Vacated

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "raw_stdio.py"
PLAIN = Caller(revision="2025-11-25", client_name="plain", session="plain-1")
UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
SHOWS = replace(PLAIN, client_name="shows", session="shows-1", capabilities=UI)
ASKS = replace(PLAIN, client_name="asks", session="asks-1", capabilities={"roots": {}, "sampling": {}})
PAGES = {"raw__board", "raw__chunk"}


DEAF = {"features.broken": ["tools_list_changed"]}


@asynccontextmanager
async def opened(
    *flags: str, wait: float = 30.0, rules: Mapping[str, Any] | None = None, **more: Any
) -> AsyncGenerator[tuple[Router, list[str]]]:
    """A gateway before one server, and what its listeners are told."""
    raw = UpstreamSettings(command=sys.executable, args=(str(SERVER), *flags), cwd=SERVER.parent, **more)
    profiles = {"patient": ProfileSource(extends="default", sets={"wait.tools_list": wait, **(rules or {})})}
    told: list[str] = []
    with anyio.fail_after(60):
        async with open_gateway(Settings(upstreams={"raw": raw}, profiles=profiles), profile="patient") as router:
            assert await router.upstreams["raw"].ready(30)
            router.subscribe(lambda change: told.append(change.kind))
            yield router, told


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """A named pipe: who writes to it lets the server answer."""
    path = tmp_path / "go"
    os.mkfifo(path)
    return path


async def names(router: Router, caller: Caller) -> set[str]:
    return {tool["name"] for tool in (await router.respond("tools/list", {}, caller))["tools"]}


async def call(router: Router, caller: Caller, tool: str) -> Any:
    return await router.respond("tools/call", {"name": f"raw__{tool}", "arguments": {}}, caller)


async def test_the_first_list_of_a_host_that_shows_pages_has_what_is_registered_for_such_hosts_alone() -> None:
    async with opened("apps", "apps-if-declared") as (router, told):
        assert not PAGES & await names(router, PLAIN)
        assert await names(router, SHOWS) >= PAGES
        assert not PAGES & await names(router, PLAIN)
        assert told == []


async def test_whoever_never_hears_of_changes_is_given_its_own_list_at_once_whatever_it_declares(go: Path) -> None:
    async with opened("slow-if-able", rules=DEAF, env={"GO": str(go)}) as (router, _):
        upstream: Any = router.upstreams["raw"]
        await router.respond("resources/list", {}, ASKS)  # of which it hears
        assert not upstream.knows(ASKS)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(names, router, ASKS)
            await anyio.to_thread.run_sync(go.write_bytes, b"")
        assert upstream.knows(ASKS)


async def test_whoever_hears_of_changes_and_declares_no_extension_is_given_what_is_known(go: Path) -> None:
    """Its own session is opened meanwhile."""
    async with opened("slow-if-able", env={"GO": str(go)}) as (router, _):
        upstream: Any = router.upstreams["raw"]
        assert "raw__pid" in await names(router, ASKS)
        assert not upstream.knows(ASKS)
        await anyio.to_thread.run_sync(go.write_bytes, b"")
        await call(router, ASKS, "pid")
        assert upstream.knows(ASKS)


async def test_all_the_lists_that_a_host_asks_for_at_once_are_its_own(go: Path) -> None:
    async with opened("apps", "apps-if-declared", "slow-if-able", env={"GO": str(go)}) as (router, told):
        found: list[set[str]] = []

        async def tools() -> None:
            found.append(await names(router, SHOWS))

        async def resources() -> None:
            await router.respond("resources/list", {}, SHOWS)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resources)
            for _ in range(3):
                tasks.start_soon(tools)
            await anyio.wait_all_tasks_blocked()
            assert found == []
            await anyio.to_thread.run_sync(go.write_bytes, b"")
        assert all(each >= PAGES for each in found)
        assert told == []


async def test_a_first_list_that_could_not_be_waited_for_is_followed_by_the_news_that_it_is_another(go: Path) -> None:
    flags = ("apps", "apps-if-declared", "slow-if-able")
    async with opened(*flags, wait=0.1, env={"GO": str(go)}) as (router, told):
        news = anyio.Event()
        router.subscribe(lambda kind: news.set())
        assert not PAGES & await names(router, SHOWS)
        assert told == []
        await anyio.to_thread.run_sync(go.write_bytes, b"")
        await news.wait()
        assert told == ["tools"]
        assert await names(router, SHOWS) >= PAGES


async def test_who_lists_before_the_upstream_is_there_is_shown_its_own_lists_too() -> None:
    """Lists that are known from before are those of another kind of host."""
    async with opened("apps", "apps-if-declared") as (router, told):
        upstream: Any = router.upstreams["raw"]
        upstream.default.vacate(Vacated("its host has left"))
        while upstream.state is UpstreamState.READY:
            await upstream.default.status.changed()
        assert await names(router, SHOWS) >= PAGES
        assert told == []


@pytest.mark.parametrize("caller", [PLAIN, SHOWS, ASKS], ids=lambda caller: caller.client_name)
async def test_a_first_call_is_no_news_for_anybody(caller: Caller) -> None:
    async with opened("apps") as (router, told):
        before = await names(router, caller)
        for number in range(3):
            await call(router, replace(caller, session=f"{caller.session} {number}"), "pid")
        assert await names(router, caller) == before
        assert told == []


async def test_a_host_that_calls_before_it_lists_anything_has_seen_nothing_change() -> None:
    async with opened("apps", "apps-if-declared") as (router, told):
        await call(router, SHOWS, "pid")
        assert told == []
        assert await names(router, SHOWS) >= PAGES
        assert told == []


async def test_what_a_session_grows_is_news() -> None:
    async with opened("apps") as (router, told):
        news = anyio.Event()
        await names(router, SHOWS)
        await call(router, SHOWS, "pid")
        router.subscribe(lambda kind: news.set())
        await call(router, SHOWS, "grow")
        await news.wait()
        assert set(told) == {"tools"}

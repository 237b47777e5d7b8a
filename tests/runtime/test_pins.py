"""A real server changes its tools while it runs: the changed one is withheld until its user has looked at it."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.policy_settings import PinMode, PinSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.errors import NotAllowed
from gateway.runtime import Gateway, run_gateway
from gateway.upstream.pin_files import change_pins, pins_path, read_pins

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "turncoat_stdio.py"
MAIL = UpstreamSettings(command=sys.executable, args=(str(SERVER),))
HOST = Caller(revision="2025-11-25", client_name="claude-code")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(tmp_path / "state"))
    return tmp_path / "state" / "pins"


class Changes:
    """The changes that hosts are told of, to be waited for."""

    def __init__(self, gateway: Gateway) -> None:
        self._event = anyio.Event()
        gateway.router.subscribe(self._told)

    def _told(self, change: Change) -> None:
        if change.kind == "tools":
            self._event.set()

    async def next(self) -> None:
        await self._event.wait()
        self._event = anyio.Event()


@asynccontextmanager
async def opened(mode: PinMode, settings: UpstreamSettings = MAIL) -> AsyncGenerator[Gateway]:
    with anyio.fail_after(60):
        async with run_gateway(Settings(upstreams={"mail": settings}, pins=PinSettings(mode=mode))) as gateway:
            assert await gateway.upstreams.settled(30)
            yield gateway


async def names(gateway: Gateway, caller: Caller = HOST) -> list[str]:
    listed = await gateway.router.respond("tools/list", {}, caller)
    return [tool["name"] for tool in listed["tools"] if not tool["name"].startswith("gateway_")]


async def call(gateway: Gateway, name: str, **arguments: str) -> dict[str, Any]:
    return await gateway.router.respond("tools/call", {"name": name, "arguments": arguments}, HOST)


async def turned(gateway: Gateway) -> None:
    """Have the server change its tools, and wait until the gateway knows them."""
    changes = Changes(gateway)
    await call(gateway, "mail__turn")
    await changes.next()


ALL = ["mail__turn", "mail__send", "mail__look"]


async def test_a_changed_tool_and_a_new_one_are_withheld_while_the_server_runs_and_after_a_restart(
    state: Path,
) -> None:
    async with opened("hold") as gateway:
        assert await names(gateway) == ALL
        await turned(gateway)
        assert await names(gateway) == ["mail__turn", "mail__look"]
        with pytest.raises(NotAllowed, match=r"argument bcc is new and required.*mcp-gateway pins diff mail"):
            await call(gateway, "mail__send", to="you", bcc="me")
        with pytest.raises(NotAllowed, match="new since"):
            await call(gateway, "mail__find")
        assert "2 tools withheld" in str(gateway.pins.summary("mail", MAIL))
        path = pins_path(state, "mail", MAIL)
        change_pins(path, lambda now: now and now.approved(frozenset({"send"})))
        gateway.router.upstream_changed("mail", "tools")
        assert await names(gateway) == ALL
        await call(gateway, "mail__send", to="you", bcc="me")
    async with opened("hold") as gateway:  # the server begins as it was, which is not what was approved
        assert await names(gateway) == ["mail__turn", "mail__look"]


async def test_in_warn_mode_the_changes_are_reported_and_everything_is_offered() -> None:
    async with opened("warn") as gateway:
        await names(gateway)
        await turned(gateway)
        assert await names(gateway) == [*ALL, "mail__find"]
        assert "2 tools changed or new" in str(gateway.pins.summary("mail", MAIL))


async def test_the_mode_can_be_changed_while_the_gateway_runs(state: Path) -> None:
    async with opened("off") as gateway:
        assert await names(gateway) == ALL
        assert not state.exists()
        gateway.apply(Settings(upstreams={"mail": MAIL}, pins=PinSettings(mode="hold")))
        assert await names(gateway) == ALL
        await turned(gateway)
        assert await names(gateway) == ["mail__turn", "mail__look"]
        gateway.apply(Settings(upstreams={"mail": MAIL.model_copy(update={"pins": "off"})}))
        assert await names(gateway) == [*ALL, "mail__find"]


async def test_two_gateways_share_what_is_pinned_and_what_is_approved(state: Path) -> None:
    async with opened("hold") as one, opened("hold") as other:
        assert await names(one) == await names(other) == ALL
        await turned(other)
        assert await names(other) == ["mail__turn", "mail__look"]
        assert await names(one) == ALL
        assert {change.tool for change in one.pins.changes("mail", MAIL)} == {"send", "look", "find"}


async def test_another_server_in_the_place_of_the_pinned_one_is_withheld(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER.read_text("utf-8"), "utf-8")
    settings = UpstreamSettings(command=sys.executable, args=(str(script),))
    async with opened("hold", settings) as gateway:
        assert await names(gateway) == ALL
    script.write_text(script.read_text("utf-8").replace('else "turncoat"', 'else "impostor"'), "utf-8")
    async with opened("hold", settings) as gateway:
        assert await names(gateway) == []
        with pytest.raises(NotAllowed, match="calls itself impostor, and called itself turncoat"):
            await call(gateway, "mail__look")


async def test_a_host_with_other_capabilities_gets_its_first_list() -> None:
    asking = Caller(revision="2025-11-25", client_name="claude-code", session="s", capabilities={"elicitation": {}})
    async with opened("hold") as gateway:
        assert await names(gateway) == ALL
        assert await names(gateway, asking) == ALL


async def test_a_gateway_that_no_host_asks_pins_and_compares_all_the_same(state: Path) -> None:
    async with opened("hold") as gateway:
        mail = gateway.upstreams["mail"]
        pinned = read_pins(pins_path(state, "mail", mail.settings))
        assert pinned is not None
        assert sorted(pinned.tools) == ["look", "send", "turn"]
        changes = Changes(gateway)
        await mail.request("tools/call", {"name": "turn", "arguments": {}})  # not by a host, which would ask for a list
        await changes.next()
        words = gateway.pins.summary("mail", mail.settings)
        assert words is not None
        assert "2 tools withheld" in words

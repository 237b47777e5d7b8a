"""Approvals in an agent loop: the program asks its user, or the words say what works there."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway import connect, sync
from gateway import open as open_gateway
from gateway.agents import ApprovalRequest
from gateway.errors import ApprovalNeeded, ConfigError, NotAllowed
from tests.agents.conftest import TOKEN, chat, served, settings_with

pytestmark = pytest.mark.anyio

POLICY = {"rules": [{"name": "look-first", "effect": "approve", "reason": "It costs money.", "destructive": True}]}
CALL = ("one__picture", {})


FORGING = Path(__file__).parents[1] / "servers" / "forging_stdio.py"


def opened(on_approval=None, way="ask"):
    return open_gateway(settings_with(policy={**POLICY, "approval": way}), on_approval=on_approval)


@asynccontextmanager
async def connected(on_approval=None, way="ask", **more):
    settings = settings_with(policy={**POLICY, "approval": way}, **more)
    async with served(settings) as url, connect(url, TOKEN, on_approval=on_approval) as gw:
        yield gw


WAYS = [(opened, "ask"), (opened, "terminal"), (opened, "two-step"), (connected, "ask"), (connected, "two-step")]


@pytest.mark.parametrize(("opened", "way"), WAYS, ids=[f"{each.__name__}-{way}" for each, way in WAYS])
@pytest.mark.parametrize("agrees", [True, False])
async def test_the_programs_own_function_is_asked_about_each_call(agrees, opened, way) -> None:
    asked: list[ApprovalRequest] = []

    async def on_approval(call: ApprovalRequest) -> bool:
        asked.append(call)
        return agrees

    async with opened(on_approval, way) as gw:
        tools = gw.toolset(api="openai_chat")
        first, second = (
            await tools.respond(chat(CALL)),
            await tools.respond(chat(CALL)),
        )
    assert [result.is_error for result in (*first.results, *second.results)] == [not agrees] * 2
    assert asked == [ApprovalRequest("one__picture", "one", "picture", {}, "look-first", "It costs money.")] * 2
    if not agrees:
        assert isinstance(first.results[0].error, NotAllowed)
        assert "declined" in str(first)


@pytest.mark.parametrize("opened", [opened, connected], ids=["opened", "connected"])
async def test_parallel_calls_are_asked_about_one_by_one(opened) -> None:
    at_once = most = 0

    async def on_approval(_call: ApprovalRequest) -> bool:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.05)
        at_once -= 1
        return True

    async with opened(on_approval) as gw:
        responded = await gw.toolset(api="openai_chat").respond(chat(CALL, CALL, CALL))
    assert ([result.is_error for result in responded.results], most) == ([False] * 3, 1)


@pytest.mark.parametrize("way", ["ask", "terminal", "two-step"])
async def test_without_one_the_words_name_what_works_in_a_program(way) -> None:
    async with opened(way=way) as gw:
        responded = await gw.toolset(api="openai_chat").respond(chat(CALL))
    assert isinstance(responded.results[0].error, ApprovalNeeded)
    assert "on_approval" in str(responded)
    assert "mcp-gateway approvals" not in str(responded)
    assert "gateway_approve" not in str(responded)


@pytest.mark.parametrize("opened", [opened, connected], ids=["opened", "connected"])
async def test_whatever_the_function_does_only_true_approves(opened) -> None:
    async def broken(_call: ApprovalRequest) -> bool:
        raise ValueError("secret words")

    async def wordy(_call: ApprovalRequest):
        return "no"

    for function, words in ((broken, "on_approval raised ValueError"), (wordy, "on_approval returned str")):
        async with opened(function) as gw:
            responded = await gw.toolset(api="openai_chat").respond(chat(CALL))
        assert responded.results[0].is_error
        assert words in str(responded)
        assert "secret words" not in str(responded)


async def test_what_is_no_function_is_refused() -> None:
    wrong: Any = "yes"
    for made in (open_gateway(settings_with(), on_approval=wrong), connect("http://127.0.0.1:9", on_approval=wrong)):
        with pytest.raises(ConfigError, match="on_approval"):
            async with made:
                pass


async def test_where_the_terminal_decides_a_connected_program_is_not_asked() -> None:
    asked: list[ApprovalRequest] = []

    async def on_approval(call: ApprovalRequest) -> bool:
        asked.append(call)
        return True

    async with connected(on_approval, "terminal") as gw:
        responded = await gw.toolset(api="openai_chat").respond(chat(CALL))
    assert (asked, responded.results[0].is_error) == ([], True)
    assert "mcp-gateway approvals approve" in str(responded)


async def test_a_server_cannot_ask_for_an_approval_in_the_gateways_name() -> None:
    asked: list[ApprovalRequest] = []

    async def on_approval(call: ApprovalRequest) -> bool:
        asked.append(call)
        return True

    forging = {"command": sys.executable, "args": [str(FORGING)]}
    async with connected(on_approval, upstreams={"one": forging}) as gw:
        responded = await gw.toolset(api="openai_chat").respond(chat(("one__forge", {})))
    assert [call.rule for call in asked] == ["look-first"]  # the gateway's own question, before the call
    assert asked[0].tool == "forge"
    assert "does not answer elicitation/create, except for approvals" in str(responded)


def test_a_program_without_async_asks_with_an_ordinary_function() -> None:
    asked: list[str] = []

    def on_approval(call: ApprovalRequest) -> bool:
        asked.append(call.tool)
        return True

    with sync.open(settings_with(policy=POLICY), on_approval=on_approval) as gw:
        responded = gw.toolset(api="openai_chat").respond(chat(CALL))
    assert (asked, responded.results[0].is_error) == (["picture"], False)

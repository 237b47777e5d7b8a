"""Approvals in an agent loop: the program asks its user, or the words say what works there."""

import anyio
import pytest

from gateway import open as open_gateway
from gateway import sync
from gateway.agents import ApprovalRequest
from gateway.errors import ApprovalNeeded, ConfigError, NotAllowed
from tests.agents.conftest import chat, settings_with

pytestmark = pytest.mark.anyio

POLICY = {"rules": [{"name": "look-first", "effect": "approve", "reason": "It costs money.", "destructive": True}]}
CALL = ("one__picture", {})


def opened(on_approval=None, way="ask"):
    return open_gateway(settings_with(policy={**POLICY, "approval": way}), on_approval=on_approval)


@pytest.mark.parametrize("way", ["ask", "terminal", "two-step"])
@pytest.mark.parametrize("agrees", [True, False])
async def test_the_programs_own_function_is_asked_about_each_call(agrees, way) -> None:
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


async def test_parallel_calls_are_asked_about_one_by_one() -> None:
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


async def test_whatever_the_function_does_only_true_approves() -> None:
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
    with pytest.raises(ConfigError, match="on_approval"):
        async with opened("yes"):
            pass


def test_a_program_without_async_asks_with_an_ordinary_function() -> None:
    asked: list[str] = []

    def on_approval(call: ApprovalRequest) -> bool:
        asked.append(call.tool)
        return True

    with sync.open(settings_with(policy=POLICY), on_approval=on_approval) as gw:
        responded = gw.toolset(api="openai_chat").respond(chat(CALL))
    assert (asked, responded.results[0].is_error) == (["picture"], False)

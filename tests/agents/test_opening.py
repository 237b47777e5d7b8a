"""The ways a gateway is opened: for a block, until it is closed, and without async."""

import asyncio
import os

import pytest

import gateway
from gateway import sync
from gateway.errors import ConfigError, GatewayUnreachable

pytestmark = pytest.mark.anyio


def running_tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


async def test_a_gateway_that_is_awaited_is_open_in_other_tasks_until_it_is_closed(in_process, chat) -> None:
    # As in a notebook: each cell is a task of its own.
    gw = await asyncio.create_task(_awaited(in_process))
    responded = await asyncio.create_task(gw.toolset(api="openai_chat").respond(chat(("one__picture", {}))))
    assert [message["role"] for message in responded] == ["assistant", "tool", "user"]
    await asyncio.create_task(gw.aclose())
    assert "gateway" not in running_tasks()
    await gw.aclose()


async def _awaited(in_process):
    return await in_process()


async def test_a_gateway_that_cannot_be_opened_raises_where_it_is_awaited() -> None:
    with pytest.raises(ConfigError):
        await gateway.open("no-such-file.toml")
    with pytest.raises(GatewayUnreachable):
        await gateway.connect("http://127.0.0.1:9")
    assert "gateway" not in running_tasks()


async def test_one_who_stops_waiting_for_a_gateway_leaves_none_behind(in_process) -> None:
    waiting = asyncio.create_task(_awaited(in_process))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    for task in [task for task in asyncio.all_tasks() if task.get_name() == "gateway"]:
        await asyncio.wait([task])
    assert "gateway" not in running_tasks()


def test_a_program_without_async_has_the_same_loop(tmp_path, chat, config_file) -> None:
    with sync.open(config_file) as gw:
        tools = gw.toolset(api="openai_chat")
        assert "one__picture" in [schema["function"]["name"] for schema in tools.schemas()]
        responded = tools.respond(chat(("one__picture", {})))
        assert [message["role"] for message in responded] == ["assistant", "tool", "user"]
        assert gw.put(b"hello", media_type="text/plain").size == 5
        assert tools.fresh().has_tool_calls(chat(("one__picture", {})))
    with pytest.raises(ConfigError), sync.open(os.fspath(tmp_path / "none.toml")):
        pass


def test_a_turn_is_lowered_without_async() -> None:
    call = {"id": "call_1", "name": "look", "result": {"content": [{"type": "text", "text": "hello"}]}}
    turn = sync.lower_turn([call], "openai_chat")
    assert turn.messages == [{"role": "tool", "tool_call_id": "call_1", "content": "hello"}]
    resolved = sync.resolve_messages(turn.messages, "openai_chat", gateway.MemoryStore())
    assert resolved.messages == turn.messages

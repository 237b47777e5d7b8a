"""A small program on the public names: what type checkers make of it is asserted by the tests beside it."""

from typing import assert_type

import gateway
from gateway import Envelope, LoweredTurn, Toolset


async def loop(completion: object) -> list[object]:
    envelope = gateway.lift({"content": [{"type": "text", "text": "hello"}]})
    assert_type(envelope, Envelope)
    turn = await gateway.lower_turn([{"id": "1", "name": "look", "result": envelope}], "openai_chat")
    assert_type(turn, LoweredTurn)
    store = gateway.MemoryStore()
    stored = await store.put(b"hello", owner="local", media_type="text/plain")
    assert_type(stored.handle, str)
    async with gateway.open("mcp-gateway.toml") as gw:
        tools = gw.toolset(api="openai_chat")
        assert_type(tools, Toolset)
        return list(await tools.respond(completion))


gateway.lower_turn_now([], "openai_chat", on_unsupported="explode")  # wrong on purpose

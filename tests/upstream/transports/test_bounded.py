"""Upstreams that ask and tell without end: what is kept of it is bounded, and the link ends with a cause."""

import sys
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import memory_of
from gateway.errors import UpstreamLost
from gateway.upstream import Upstreams, UpstreamState
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.transports.backlog import Backlog

pytestmark = pytest.mark.anyio

GREEDY = """
import json, sys

def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")

def answer(message):
    if message["method"] == "initialize":
        return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "greedy", "version": "1"}}
    return {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}

for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        break
    if "id" in message:
        say(id=message["id"], result=answer(message))
        sys.stdout.flush()
"""

NEVER_READS = """
count = 0
while True:
    count += 1
    say(id=count, method="ping", params={"pad": "x" * 200})
"""

ASKS = """
import threading
def read():
    for line in sys.stdin:
        pass
threading.Thread(target=read, daemon=True).start()
count = 0
while True:
    count += 1
    say(id=count, method="elicitation/create", params={"message": "?", "requestedSchema": {"type": "object"}})
"""

ONE_LARGE_AFTER_ANOTHER = """
count = 0
while True:
    count += 1
    say(id=count, method="ping", params={"pad": "x" * 300000})
"""


TABLES = """
import threading
def read():
    for line in sys.stdin:
        pass
threading.Thread(target=read, daemon=True).start()
for count in range(2):
    say(id=count, method="elicitation/create", params={"message": "?", "requestedSchema": {"enum": [[]] * 20_001}})
sys.stdout.flush()
threading.Event().wait()
"""
"""Two questions whose size in memory is not counted, since that would take long."""


class SlowHost:
    """A host whose user never answers."""

    party = "slow"
    connection = None
    bounds_waiting = False

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        await anyio.sleep_forever()
        return {}

    async def tell(self, method: str, params: Any) -> None:
        await anyio.sleep_forever()

    async def let_go(self) -> None: ...


WITH_SLOW_HOST = RequestContext(Caller(), host=SlowHost())


def settings(source: str) -> UpstreamSettings:
    return UpstreamSettings(command=sys.executable, args=("-c", source), max_message_bytes=4 * 1024 * 1024)


@pytest.mark.parametrize(
    "behaviour", [NEVER_READS, ASKS, ONE_LARGE_AFTER_ANOTHER, TABLES], ids=["pings", "asks", "large", "tables"]
)
async def test_requests_without_end_end_the_link(behaviour: str) -> None:
    async with Upstreams({"greedy": settings(GREEDY + behaviour)}, on_change=lambda *_: None) as upstreams:
        upstream = upstreams["greedy"]
        assert await upstream.ready(30)
        limits = Timeouts(call=60, idle=60)
        with pytest.raises(
            UpstreamLost, match=r"sends too many requests: \d+ of its requests, with .*, are unanswered"
        ):
            await upstream.default.request("tools/call", {"name": "go"}, WITH_SLOW_HOST, limits)
        assert "sends too many requests" in (upstream.cause or "") or upstream.state is UpstreamState.READY


async def test_notifications_that_no_host_takes_are_dropped_and_the_call_goes_on() -> None:
    telling = """
for _ in range(20000):
    say(method="notifications/message", params={"level": "error", "data": "x"})
say(id=message["id"], result={"content": []})
sys.stdout.flush()
for line in sys.stdin: pass
"""
    async with Upstreams({"greedy": settings(GREEDY + telling)}, on_change=lambda *_: None) as upstreams:
        limits = Timeouts(call=60, idle=60)
        result = await upstreams["greedy"].default.request("tools/call", {"name": "go"}, WITH_SLOW_HOST, limits)
        assert result == {"content": []}
        assert upstreams["greedy"].state is UpstreamState.READY


async def test_a_backlog_is_bounded_in_messages_and_bytes() -> None:
    for most_messages, most_bytes, fit in ((3, 10_000_000, 3), (100, 25_000, 3)):
        send, receive = anyio.create_memory_object_stream[str](0)
        over: list[str] = []
        backlog = Backlog(send, most_bytes, over.append, json_of=lambda item: item, most_messages=most_messages)
        refused = 0

        async def one(backlog: Backlog[str] = backlog) -> None:
            nonlocal refused
            try:
                await backlog.send("x" * 10_000)
            except anyio.BrokenResourceError:
                refused += 1

        async with anyio.create_task_group() as tasks, send, receive:
            for _ in range(5):
                tasks.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            assert refused == 5 - fit
            assert len(over) == 1
            for _ in range(fit):
                assert await receive.receive() == "x" * 10_000


def test_memory_is_counted_until_it_is_too_much() -> None:
    assert memory_of({"a": [1, "xx", None], "b": "é"}) > memory_of({"a": [1, "xx", None]}) > 0
    assert memory_of("x" * 1_000) - memory_of("") == 1_000
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert memory_of(deep) > 100_000
    assert 1_000 < memory_of([0] * 1_000_000, 1_000) < 10_000_000

"""A byte stream as message streams: what hostile lines, and an end that does not read, can do."""

import contextlib
import json
import socket

import anyio
import pytest
from anyio.abc import SocketStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification

from gateway.serving.mcp.line_streams import LineReads, LineWrites, Sender

pytestmark = pytest.mark.anyio


def line(**message):
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


async def pair() -> tuple[SocketStream, socket.socket]:
    here, there = socket.socketpair()
    return await SocketStream.from_socket(here), there


async def test_what_is_not_a_message_is_dropped_and_the_next_one_is_read():
    here, there = await pair()
    junk = [b"\n", b"not json\n", b"[1]\n", b"[" * 5_000 + b"\n", b"\xff\n", b'{"id":1}\n']
    async with here:
        reads = LineReads(here, b"".join(junk), Sender("cline", "m"))
        there.sendall(b'{"relay":{"waited":"long"}}\n{"relay":{"waited":2}}\n' + line(id=1, method="ping"))
        there.close()
        with anyio.fail_after(30):
            message = await reads.receive()
            assert isinstance(message, SessionMessage)
            assert isinstance(message.metadata, ServerMessageMetadata)
            assert message.message.model_dump()["method"] == "ping"
            arrival = message.metadata.request_context
            assert arrival.ago >= 2
            assert (arrival.profile, arrival.model) == ("cline", "m")
            with pytest.raises(anyio.EndOfStream):
                await reads.receive()


@pytest.mark.parametrize(
    ("told", "method", "asked"),
    [
        ({"key": "a" * 64, "given": "d"}, "tools/list", ("a" * 64, "d")),
        ({"key": None, "given": "d"}, "tools/list", (None, "d")),
        ({"key": "a" * 64, "given": None}, "tools/call", None),
        ({"key": "../" + "a" * 61, "given": None}, "tools/list", None),
        ({"key": "a" * 64, "given": 1}, "tools/list", None),
        ({}, "tools/list", None),
        ("all", "tools/list", None),
    ],
)
async def test_a_list_is_kept_by_a_key_of_its_relay_and_nothing_else(told, method, asked):
    here, there = await pair()
    relay = json.dumps({"relay": {"list": told}}).encode() + b"\n"
    async with here:
        reads = LineReads(here, relay + line(id=1, method=method) + line(id=2, method=method), Sender())
        there.close()
        found = []
        with anyio.fail_after(30):
            for _ in range(2):
                message = await reads.receive()
                assert isinstance(message, SessionMessage)
                assert isinstance(message.metadata, ServerMessageMetadata)
                found.append(message.metadata.request_context.asked)
    assert found == [asked, None]


async def test_a_list_for_a_host_in_another_environment_is_not_kept():
    here, there = await pair()
    relay = json.dumps({"relay": {"list": {"key": "a" * 64, "given": "d"}}}).encode() + b"\n"
    async with here:
        reads = LineReads(here, relay + line(id=1, method="tools/list"), Sender(keeps_lists=False))
        there.close()
        with anyio.fail_after(30):
            message = await reads.receive()
    assert isinstance(message, SessionMessage)
    assert isinstance(message.metadata, ServerMessageMetadata)
    assert message.metadata.request_context.asked == (None, "d")


async def test_a_line_without_an_end_ends_the_stream(monkeypatch):
    monkeypatch.setattr("gateway.serving.mcp.line_streams._LONGEST_LINE", 1_000)
    here, there = await pair()
    async with here:
        reads = LineReads(here, b"x" * 2_000, Sender())
        with anyio.fail_after(30), pytest.raises(anyio.EndOfStream):
            await reads.receive()
    there.close()


async def test_an_end_that_does_not_read_makes_only_its_own_sender_wait():
    here, there = await pair()
    note = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x", params={"text": "x" * 1_000_000}))
    async with here, anyio.create_task_group() as tasks:
        writes = LineWrites(here)
        tasks.start_soon(writes.run)
        sent = 0
        with anyio.move_on_after(1):
            while sent < 100:
                await writes.send(note)
                sent += 1
        assert 8 <= sent < 20
        assert not writes.is_whole
        there.close()
        with anyio.fail_after(30):
            await writes.aclose()
            with pytest.raises(anyio.ClosedResourceError):
                await writes.send(note)
        tasks.cancel_scope.cancel()


async def test_an_end_that_asks_without_reading_is_not_asked_for_more():
    here, there = await pair()
    answer = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x", params={"text": "x" * 1_000_000}))
    async with here, anyio.create_task_group() as tasks:
        reads, writes = LineReads(here, b"", Sender()), LineWrites(here)
        reads.room = writes.room
        tasks.start_soon(writes.run)
        for _ in range(130):
            tasks.start_soon(_send_until_closed, writes, answer)
        await anyio.wait_all_tasks_blocked()
        there.sendall(line(method="y"))
        with anyio.move_on_after(0.2) as unread:
            await reads.receive()
        assert unread.cancelled_caught
        while b"\n" not in await anyio.to_thread.run_sync(there.recv, 1_000_000):
            pass
        tasks.start_soon(anyio.to_thread.run_sync, _read_on, there)
        with anyio.fail_after(30):
            assert isinstance(read := await reads.receive(), SessionMessage)
        assert isinstance(read.message, JSONRPCNotification)
        there.shutdown(socket.SHUT_RDWR)
        there.close()
        tasks.cancel_scope.cancel()


async def _send_until_closed(writes: LineWrites, message: SessionMessage) -> None:
    with contextlib.suppress(anyio.ClosedResourceError):
        await writes.send(message)


def _read_on(there: socket.socket) -> None:
    try:
        while there.recv(1_000_000):
            pass
    except OSError:
        pass


async def test_what_was_sent_before_the_end_arrives_whole():
    here, there = await pair()
    note = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="x"))
    async with here, anyio.create_task_group() as tasks:
        writes = LineWrites(here)
        tasks.start_soon(writes.run)
        await writes.send(note)
        with anyio.fail_after(30):
            await writes.aclose()
        assert writes.is_whole
        assert there.recv(1_000) == b'{"jsonrpc":"2.0","method":"x"}\n'
        there.close()
        with pytest.raises(anyio.ClosedResourceError):
            await writes.send(note)
        tasks.cancel_scope.cancel()

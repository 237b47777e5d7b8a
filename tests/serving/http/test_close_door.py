"""The end of listening: whoever has connected is answered, and nobody connects any more."""

import socket
import time
from functools import partial

import anyio
import anyio.to_thread
import pytest

from gateway.serving.http import Limits, Listening, serve

pytestmark = pytest.mark.anyio
MANY = 30
ASKED = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def connected(port: int, words: bytes = ASKED) -> socket.socket:
    """A connection that the system has made: the server need not have taken it yet."""
    made = socket.create_connection(("127.0.0.1", port), 30)
    made.sendall(words)
    return made


def answer(peer: socket.socket, words: bytes = b"") -> bytes:
    peer.sendall(words)
    with peer:
        return b"".join(iter(partial(peer.recv, 65_536), b""))


async def closing(application, ask):
    """What `ask` returns, which runs on the event loop just before the door is closed; and the port."""
    asked = []

    async def until(close_door):
        asked.append(ask(ports[0]))
        await close_door()

    ports: list[int] = []
    await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    return asked[0], ports[0]


@pytest.mark.usefixtures("protocol")
async def test_all_that_have_connected_are_answered(application):
    with anyio.fail_after(60):
        peers, port = await closing(application, lambda port: [connected(port) for _ in range(MANY)])
        for peer in peers:
            assert (await anyio.to_thread.run_sync(answer, peer)).startswith(b"HTTP/1.1 200 ")
    with pytest.raises(ConnectionRefusedError):
        connected(port)


@pytest.mark.usefixtures("protocol")
async def test_a_request_that_has_begun_is_waited_for(application):
    async def half(port):
        peer = await anyio.to_thread.run_sync(connected, port, ASKED[:20])
        await anyio.sleep(0.1)
        return peer

    async def until(close_door):
        peer = await half(ports[0])

        async def go_on():
            await anyio.sleep(0.1)
            answers.append(await anyio.to_thread.run_sync(answer, peer, ASKED[20:]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go_on)
            await close_door()

    ports: list[int] = []
    answers: list[bytes] = []
    with anyio.fail_after(60):
        await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    assert answers[0].startswith(b"HTTP/1.1 200 ")


@pytest.mark.usefixtures("protocol")
async def test_nobody_waits_for_a_connection_that_is_kept_open(application):
    took: list[float] = []
    ports: list[int] = []

    async def until(close_door):
        kept = await anyio.to_thread.run_sync(connected, ports[0])
        answered = b""
        while not answered.endswith(b"\r\n\r\n0"):
            answered += await anyio.to_thread.run_sync(kept.recv, 65_536)
        began = time.monotonic()
        await close_door()
        assert await anyio.to_thread.run_sync(answer, kept) == b""
        took.append(time.monotonic() - began)

    with anyio.fail_after(60):
        await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    assert took[0] < 0.4

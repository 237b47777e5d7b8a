"""The end of listening: whoever has connected is answered, and nobody connects any more."""

import gc
import socket
import time
import weakref
from functools import partial

import anyio
import anyio.to_thread
import pytest

from gateway.serving.http import Limits, Listening, serve
from gateway.serving.http.connections import Connections
from gateway.serving.http.limited_connection import LimitedConnection
from tests.serving.http.conftest import listening

pytestmark = pytest.mark.anyio
MANY = 30
ASKED = b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
LAST_ASKED = ASKED.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")


def connected(port: int, words: bytes = ASKED) -> socket.socket:
    """A connection that the system has made: the server need not have taken it yet."""
    made = socket.create_connection(("127.0.0.1", port), 30)
    made.sendall(words)
    return made


def answer(peer: socket.socket, words: bytes = b"") -> bytes:
    peer.sendall(words)
    with peer:
        return b"".join(iter(partial(peer.recv, 65_536), b""))


def first_answer(peer: socket.socket) -> None:
    answered = b""
    while not answered.endswith(b"\r\n\r\n0"):
        answered += peer.recv(65_536)


def until_the_last_chunk(peer: socket.socket) -> bytes:
    answered = b""
    while not answered.endswith(b"0\r\n\r\n"):
        answered += peer.recv(65_536)
    return answered


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


@pytest.fixture
def sent_last(monkeypatch):
    """Functions that are called just before idle connections are closed, with nothing of the event loop between."""
    calls = []

    class Told(Connections):
        def close_idle(self):
            while calls:
                calls.pop()()
            return super().close_idle()

    monkeypatch.setattr("gateway.serving.http.http_server.Connections", Told)
    return calls


@pytest.fixture
def answered_long_ago(monkeypatch):
    """However soon after an answer, no request is expected."""
    monkeypatch.setattr("gateway.serving.http.limited_connection._WARM_SECONDS", 0.0)


@pytest.fixture
def answered_just_now(monkeypatch):
    """However long after an answer, the next request may be on its way."""
    monkeypatch.setattr("gateway.serving.http.limited_connection._WARM_SECONDS", 60.0)


@pytest.mark.usefixtures("protocol", "answered_long_ago")
@pytest.mark.parametrize("was_used", [False, True], ids=["opened before", "kept open"])
async def test_a_request_is_answered_that_comes_as_idle_connections_are_closed(application, sent_last, was_used):
    """No client can know of the end yet, so it may send a request on a connection that it has had for long."""
    peers: list[socket.socket] = []

    async def until(close_door):
        for _ in range(MANY):
            peers.append(peer := await anyio.to_thread.run_sync(connected, ports[0], ASKED if was_used else b""))
            if was_used:
                await anyio.to_thread.run_sync(first_answer, peer)
        sent_last.extend(partial(peer.sendall, ASKED) for peer in peers)
        await close_door()

    ports: list[int] = []
    with anyio.fail_after(60):
        await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    for peer in peers:
        assert (await anyio.to_thread.run_sync(answer, peer)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.usefixtures("protocol", "answered_just_now")
async def test_who_has_just_been_answered_is_told_of_the_end_with_the_next_answer(application):
    """Its request may cross the end of the connection on the way, and it could not know what has become of it."""
    last: list[bytes] = []
    ports: list[int] = []

    async def until(close_door):
        peer = await anyio.to_thread.run_sync(connected, ports[0])
        await anyio.to_thread.run_sync(first_answer, peer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close_door)
            await anyio.wait_all_tasks_blocked()
            last.append(await anyio.to_thread.run_sync(answer, peer, ASKED))

    with anyio.fail_after(60):
        await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    assert last[0].startswith(b"HTTP/1.1 200 ")
    assert b"connection: close\r\n" in last[0].lower()


@pytest.mark.usefixtures("protocol", "answered_just_now")
async def test_an_answer_that_had_begun_before_is_followed_by_another_that_tells_of_the_end(application):
    answers: list[bytes] = []
    ports: list[int] = []

    async def until(close_door):
        peer = await anyio.to_thread.run_sync(connected, ports[0], ASKED.replace(b"/", b"/slow", 1))
        await application.until_hanging(1)
        await close_door()  # it does not wait for what runs
        application.released.set()
        answers.append(await anyio.to_thread.run_sync(until_the_last_chunk, peer))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close_door)
            await anyio.wait_all_tasks_blocked()
            answers.append(await anyio.to_thread.run_sync(answer, peer, ASKED))

    with anyio.fail_after(60):
        await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    assert all(one.startswith(b"HTTP/1.1 200 ") for one in answers)
    assert [b"connection: close\r\n" in one.lower() for one in answers] == [False, True]


async def answered_after_the_door(application, asked):
    """What is answered to requests that came before the door was closed, and are released after that."""
    answers: list[bytes] = []
    ports: list[int] = []

    async def until(close_door):
        peer = await anyio.to_thread.run_sync(connected, ports[0], asked)
        await application.until_hanging(1)
        await close_door()
        application.released.set()
        answers.append(await anyio.to_thread.run_sync(answer, peer))

    with anyio.fail_after(60):
        await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    return answers[0].lower().split(b"http/1.1 200 ")[1:]


@pytest.mark.usefixtures("protocol")
async def test_an_answer_that_has_not_begun_as_the_door_closes_tells_of_the_end(application):
    [told] = await answered_after_the_door(application, ASKED.replace(b"/", b"/late", 1))
    assert told.count(b"connection: close\r\n") == 1


@pytest.mark.usefixtures("protocol")
async def test_of_two_requests_at_once_the_last_answer_tells_of_the_end(application):
    first, last = await answered_after_the_door(application, ASKED.replace(b"/", b"/slow", 1) + ASKED)
    assert b"connection: close\r\n" not in first
    assert b"connection: close\r\n" in last


@pytest.mark.usefixtures("protocol")
async def test_a_stream_that_ends_with_the_server_ends_its_connection(application):
    """Or a request that follows it would be lost with the connection."""
    peers: list[socket.socket] = []
    ports: list[int] = []

    async def until(close_door):
        peers.append(await anyio.to_thread.run_sync(connected, ports[0], ASKED.replace(b"/", b"/slow", 1)))
        await application.until_hanging(1)
        await close_door()

    def on_stop():
        application.released.set()

    async def read():
        await application.released.wait()
        ended.append(await anyio.to_thread.run_sync(until_the_last_chunk, peers[0]))
        ended.append(await anyio.to_thread.run_sync(answer, peers[0], ASKED))  # it reads the end before this arrives

    ended: list[bytes] = []
    listening = Listening("127.0.0.1", 0, "test", Limits())
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await serve(application, listening, on_bound=ports.append, on_stop=on_stop, until=until)
    assert ended[1] == b""
    assert application.asked == ["/slow"]


@pytest.mark.usefixtures("protocol", "answered_just_now")
async def test_peers_that_begin_requests_in_turn_are_not_waited_for_without_end(application, monkeypatch):
    monkeypatch.setattr("gateway.serving.http.http_server._LEAVING_SECONDS", 0.5)
    monkeypatch.setattr(Connections, "may_ask", lambda self, seconds: True)
    with anyio.fail_after(60):
        (peer, _) = await closing(application, lambda port: connected(port, ASKED[:20]))
    peer.close()


@pytest.mark.usefixtures("protocol")
async def test_a_connection_that_is_closed_is_freed_at_once(application, monkeypatch):
    """And not by a garbage collection, which is rare in a gateway."""
    made: list[weakref.ref[LimitedConnection]] = []
    begin = LimitedConnection.connection_made

    def noted(self, transport):
        made.append(weakref.ref(self))
        begin(self, transport)

    monkeypatch.setattr(LimitedConnection, "connection_made", noted)
    gc.disable()
    try:
        async with listening(application) as port:
            for _ in range(5):
                peer = await anyio.to_thread.run_sync(connected, port, LAST_ASKED)
                assert await anyio.to_thread.run_sync(answer, peer)
            with anyio.move_on_after(5):
                while any(one() is not None for one in made):  # noqa: ASYNC110 - nothing announces it
                    await anyio.sleep(0.01)
            assert [one() for one in made] == [None] * 5
    finally:
        gc.enable()


@pytest.mark.usefixtures("protocol")
async def test_nobody_waits_for_a_connection_that_is_kept_open(application):
    took: list[float] = []
    ports: list[int] = []

    async def until(close_door):
        kept = await anyio.to_thread.run_sync(connected, ports[0])
        await anyio.to_thread.run_sync(first_answer, kept)
        began = time.monotonic()
        await close_door()
        assert await anyio.to_thread.run_sync(answer, kept) == b""
        took.append(time.monotonic() - began)

    with anyio.fail_after(60):
        await serve(application, Listening("127.0.0.1", 0, "test", Limits()), on_bound=ports.append, until=until)
    assert took[0] < 10  # it would have been kept for more than a minute

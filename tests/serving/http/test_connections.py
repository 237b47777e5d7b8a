"""Peers that dawdle, do not read, or are too many."""

import errno
import logging
import os
import socket
import sys
from asyncio import BaseEventLoop, constants
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from gateway.serving.http.connections import Connections
from gateway.serving.http.limited_connection import LimitedConnection
from gateway.serving.http.limits import Limits

pytestmark = pytest.mark.anyio

HEAD = b"GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n"
KNOWN = b"token: right\r\n"
SHORT = {"request": 1.0, "bytes_per_second": 1_000_000}


async def connected(port, sent=b""):
    stream = await anyio.connect_tcp("127.0.0.1", port)
    await stream.send(sent)
    return stream


async def rest(stream):
    """Whatever comes until the connection is closed, in whatever way."""
    received = b""
    try:
        while True:
            received += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return received


async def answer(stream, body):
    """Read until this body has come."""
    received = b""
    while not received.endswith(b"\r\n\r\n" + body):
        received += await stream.receive()
    return received


async def dripped(stream, drop, seconds=0.1):
    """Send a drop now and then, for as long as the connection is there."""
    try:
        while True:
            await stream.send(drop)
            await anyio.sleep(seconds)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


UNFINISHED = {
    "nothing": b"",
    "a letter": b"G",
    "half a header": b"GET / HTTP/1.1\r\nHost: x\r\nA: ",
    "half a second header": HEAD % (b"/", b"") + b"GET / HTTP/1.1\r\nHost:",
    "half a body": b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
    "half a chunk": b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "not waited for": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nx",
}


async def given_up(port, what, drop):
    async with await connected(port, UNFINISHED[what]) as stream, anyio.create_task_group() as tasks:
        if drop is not None:
            tasks.start_soon(dripped, stream, drop)
        received = await rest(stream)
        tasks.cancel_scope.cancel()
    if what != "not waited for":
        # Sent once more, a reset may overtake it.
        assert b"408 Request Timeout" in received or drop is not None, what


async def test_requests_that_do_not_become_whole_are_given_up(served):
    async with served(**SHORT) as port, anyio.create_task_group() as tasks:
        for what in UNFINISHED:
            tasks.start_soon(given_up, port, what, b"x")
            if what != "half a second header":  # silent, it is an idle connection, whose limit is uvicorn's
                tasks.start_soon(given_up, port, what, None)


@pytest.mark.parametrize(("sent", "is_told"), [(b"", False), (b"G", True)])
async def test_only_requests_that_were_begun_are_said_to_be_slow(served, caplog, sent, is_told):
    async with served(**SHORT) as port, await connected(port, sent) as stream:
        assert b"408 Request Timeout" in await rest(stream)
    warned = any("its request came too slowly" in record.getMessage() for record in caplog.records)
    assert warned is is_told


async def test_blank_lines_without_end_are_no_request(served):
    async with served(**SHORT) as port, await connected(port) as stream:
        await dripped(stream, b"\r\n")


async def test_answers_that_take_long_and_idle_connections_stay(served, application):
    async with (
        served(request=0.5) as port,
        await connected(port, HEAD % (b"/hang", b"")) as long,
        await connected(port) as idle,
    ):
        await idle.send(HEAD % (b"/", b""))
        await answer(idle, b"0")
        for _ in range(2):
            async with await connected(port, b"G") as dawdling:  # is closed after some sweeps over all
                await rest(dawdling)
        await idle.send(HEAD % (b"/", b""))
        await answer(idle, b"0")
        assert application.hanging == 1
        assert (await long.receive()).startswith(b"HTTP/1.1 200")


async def test_a_body_may_take_as_long_as_it_is_large(served):
    head = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n"
    async with served(request=1.0, bytes_per_second=2) as port, await connected(port, head) as stream:
        for _ in range(10):
            await stream.send(b"xx")
            await anyio.sleep(0.2)
        await answer(stream, b"20")


async def test_a_peer_that_does_not_read_its_answer_is_left(served, application, caplog):
    async with served(unread=1.0) as port, await connected(port, HEAD % (b"/flood", b"")):
        await application.until_hanging(1)
        while application.hanging:
            await application.changed.wait()
    assert "it does not read its answer" in caplog.text


async def test_half_sent_requests_make_way_for_whole_ones(served, caplog):
    streams = []
    async with served(connections=8) as port:
        async with await connected(port, HEAD % (b"/", KNOWN)) as known:
            await answer(known, b"0")
            streams += [await connected(port, b"GET / HTTP/1.1\r\nHost: x\r\nA: ") for _ in range(40)]
            async with await connected(port, HEAD % (b"/", b"")) as new:
                await answer(new, b"0")
            await known.send(HEAD % (b"/", KNOWN))  # it was not in the way
            await answer(known, b"0")
        for stream in streams:
            await stream.aclose()
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert "8 connections open" in lines[0].getMessage()


async def test_who_is_being_answered_does_not_make_way(served, application):
    async with served(connections=8) as port:
        streams = [await connected(port, HEAD % (b"/hang", b"")) for _ in range(8)]
        await application.until_hanging(8)
        async with await connected(port) as ninth:
            assert await rest(ninth) == b""
        assert application.hanging == 8
        for stream in streams:
            await stream.aclose()


@pytest.mark.parametrize(
    "endless",
    [b"GET / HTTP/1.1\r\nHost: x\r\n%s", b"GET /%s", b"GET / HTTP/1.1\r\nHost: x\r\nA: %s"],
    ids=["headers", "address", "value"],
)
async def test_headers_without_end_are_cut_off(served, endless):
    piece = b"a: b\r\n" * 10_000 if endless.endswith(b"\n%s") else b"a" * 60_000
    async with served() as port, await connected(port, endless % piece) as stream:
        await dripped(stream, piece, 0)


async def test_trailers_without_end_are_cut_off(served):
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    async with served() as port, await connected(port, head) as stream:
        await dripped(stream, b"a: b\r\n" * 10_000, 0)


async def test_large_bodies_in_small_chunks_pass(served):
    head = b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with served() as port, await connected(port, head) as stream:
        await stream.send(b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
        await answer(stream, b"100000")


async def test_rubbish_costs_a_line_now_and_then(served, caplog):
    async with served() as port:
        for _ in range(50):
            async with await connected(port, b"\x16\x03\x01 rubbish\r\n\r\n") as stream:
                assert b" 400 " in await rest(stream)
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in lines] == ["Invalid HTTP request received."]


def test_an_address_has_its_own_bound_unless_it_is_a_proxys_or_the_loopback():
    connections = Connections(Limits(proxies=("10.0.0.0/8",)))
    counted = [address for address in ("192.0.2.1", "2001:db8::1", "127.0.0.1", "::1", "10.1.2.3") if
               connections._counts_for(address)]  # fmt: skip
    assert counted == ["192.0.2.1", "2001:db8::1"]
    assert not connections._counts_for("::ffff:10.1.2.3")
    assert not connections._counts_for("::ffff:127.0.0.1")


class Line:
    """A transport from an address, as far as the number of connections is concerned."""

    def __init__(self, address):
        self.address, self.is_open = address, True

    def get_extra_info(self, _):
        return self.address, 50_000, 0, 0

    def abort(self):
        self.is_open = False


def opened(connections, addresses):
    """Open an idle connection from each address, and return the addresses of those that are still open at the end."""
    lines: list[Any] = [Line(address) for address in addresses]
    for line in lines:
        inner: Any = SimpleNamespace(cycle=None, connection_made=lambda _: None, on_response_complete=lambda: None)
        LimitedConnection(connections, inner).connection_made(line)
    return [line.address for line in lines if line.is_open]


def test_the_addresses_of_one_ipv6_network_are_one_peer(caplog):
    connections = Connections(Limits(connections_per_address=8))
    inside = [f"2001:db8:0:1::{number:x}" for number in range(50)]
    others = [f"2001:db8:0:{number:x}::1" for number in range(2, 52)]
    assert opened(connections, [*inside, *others]) == [*inside[-8:], *others]
    assert "2001:db8:0:1::/64 has 8 connections open" in caplog.text


def test_an_ipv4_address_is_one_peer_in_whichever_form():
    connections = Connections(Limits(connections_per_address=8))
    assert len(opened(connections, ["192.0.2.1", "::ffff:192.0.2.1"] * 8 + ["192.0.2.2"])) == 9


def test_the_connections_of_a_proxy_are_not_those_of_its_network():
    limits = Limits(connections_per_address=8, proxies=("2001:db8::1",), is_replica="2001:db8::2".__eq__)
    without_bound = ["2001:db8::1"] * 20 + ["2001:db8::2"] * 20
    connections = Connections(limits)
    assert opened(connections, [*without_bound, *["2001:db8::3"] * 8]) == [*without_bound, *["2001:db8::3"] * 8]
    for connection in tuple(connections._open):
        connections.left(connection)
    assert not connections._by_peer


async def whole(port, local_host=None):
    """What comes for a request on a connection of its own; empty if the connection is refused."""
    async with await anyio.connect_tcp("127.0.0.1", port, local_host=local_host) as stream:
        try:
            await stream.send(HEAD % (b"/", b"Connection: close\r\n"))
        except anyio.BrokenResourceError:
            return b""
        return await rest(stream)


@pytest.fixture
def strangers(monkeypatch):
    """The addresses of the loopback, which have no bound, count as those of peers: there are no others to come from."""
    monkeypatch.setattr("gateway.serving.http.connections.is_loopback", lambda address: False)


OTHER = "127.0.0.2"
of_two_peers = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has but one address on its loopback")


@of_two_peers
async def test_a_peer_with_its_most_connections_gets_no_more_and_another_is_served(
    served, application, strangers, caplog
):
    async with served(connections_per_address=3) as port:
        streams = [await connected(port, HEAD % (b"/hang", b"")) for _ in range(3)]
        await application.until_hanging(3)
        assert [await whole(port) for _ in range(4)] == [b""] * 4
        assert (await whole(port, OTHER)).startswith(b"HTTP/1.1 200")
        assert application.hanging == 3
        await streams.pop().aclose()
        while application.hanging == 3:
            await application.changed.wait()
        assert (await whole(port)).startswith(b"HTTP/1.1 200")
        for stream in streams:
            await stream.aclose()
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert lines == ["127.0.0.1 has 3 connections open, its maximum: idle ones are closed"]


@of_two_peers
async def test_what_makes_way_for_a_peers_next_connection_is_its_own(served, strangers):
    async with (
        served(connections_per_address=2) as port,
        await anyio.connect_tcp("127.0.0.1", port, local_host=OTHER) as other,
        await connected(port) as first,
        await connected(port) as second,
    ):
        for stream in (other, first, second):
            await stream.send(HEAD % (b"/", b""))
            await answer(stream, b"0")
        assert (await whole(port)).startswith(b"HTTP/1.1 200")
        assert await rest(first) == b""
        for stream in (other, second):
            await stream.send(HEAD % (b"/", b""))
            await answer(stream, b"0")


class Files:
    """File descriptors for accepted connections: the next `missing` times that one is wanted, there is none."""

    def __init__(self, monkeypatch):
        self.missing = self.failed = 0
        self.pauses = []
        """What the loop wants to do after its pause."""
        accept = socket.socket.accept

        def accept_if_there_is_a_file(listener):
            if self.missing > 0:
                self.missing -= 1
                self.failed += 1
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return accept(listener)

        monkeypatch.setattr(socket.socket, "accept", accept_if_there_is_a_file)
        later = BaseEventLoop.call_later

        def call_later(loop, delay, callback, *args, **options):
            if delay == constants.ACCEPT_RETRY_DELAY:
                self.pauses.append(lambda: callback(*args))
            return later(loop, delay, callback, *args, **options)

        monkeypatch.setattr(BaseEventLoop, "call_later", call_later)
        monkeypatch.setattr(constants, "ACCEPT_RETRY_DELAY", 3_600)


@pytest.fixture
def files(monkeypatch, anyio_backend):
    if anyio_backend[1]["use_uvloop"]:
        pytest.skip("uvloop accepts connections by itself")
    return Files(monkeypatch)


def without_files(caplog):
    """What is said of connections, after everything that is worse: there is nothing worse."""
    assert [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info] == []
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


async def test_without_files_idle_connections_make_way_at_once(served, files, caplog):
    async with served() as port, await connected(port, HEAD % (b"/", b"")) as idle:
        await answer(idle, b"0")
        files.missing = 1
        async with await connected(port, HEAD % (b"/", b"")) as new:
            assert await rest(idle) == b""
            await answer(new, b"0")
    assert files.pauses == []  # it would have been one of a second for everybody
    told = "no connection can be accepted for now: Too many open files; 1 idle ones were closed"
    assert without_files(caplog) == [told]


async def test_without_files_and_without_idle_connections_everybody_waits_in_silence(
    served, application, files, caplog
):
    async with served() as port, await connected(port, HEAD % (b"/hang", b"")):
        await application.until_hanging(1)
        files.missing = 1_000
        async with await connected(port, HEAD % (b"/", b"")) as new:
            for count in range(1, 4):
                while files.failed < count:
                    await anyio.lowlevel.checkpoint()
                for _ in range(200):  # turns of the loop, in which nothing is tried
                    await anyio.lowlevel.checkpoint()
                assert files.failed == len(files.pauses) == count
                files.pauses[-1]()
            files.missing = 0
            await answer(new, b"0")
        assert application.hanging == 1
    assert without_files(caplog) == [
        "no connection can be accepted for now: Too many open files; 0 idle ones were closed"
    ]


async def test_without_files_that_nobody_reports_idle_connections_make_way_too(served, caplog, monkeypatch):
    def no_file(descriptor):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async with served() as port, await connected(port, HEAD % (b"/", b"")) as idle:
        await answer(idle, b"0")
        with monkeypatch.context() as patch:
            patch.setattr(os, "dup", no_file)
            assert await rest(idle) == b""
        assert (await whole(port)).startswith(b"HTTP/1.1 200")
    told = "no connection can be accepted for now: Too many open files; 1 idle ones were closed"
    assert without_files(caplog) == [told]


async def test_a_request_that_does_not_end_when_the_gateway_stops_is_not_a_traceback(
    application, served, caplog, monkeypatch
):
    monkeypatch.setattr("gateway.serving.http.http_server.GRACE_SECONDS", 0.2)
    async with served() as port:
        stream = await connected(port, HEAD % (b"/deaf", b""))
        await application.until_hanging(1)
    assert (await rest(stream)).startswith(b"HTTP/1.1 500 ")
    await stream.aclose()
    told = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in told] == ["Cancel 1 running task(s), timeout graceful shutdown exceeded"]

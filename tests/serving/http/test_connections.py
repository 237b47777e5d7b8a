"""Peers that dawdle, do not read, or are too many."""

import logging

import anyio
import pytest

from gateway.serving.http.connections import Connections
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

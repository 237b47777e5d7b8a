"""Where replicas reach one another: found by itself, and what it means if nobody is there."""

import socket
import threading

import pytest

from gateway.serving.cluster.forward_request import BrokenOff, Forwarder, Unreachable, forwarding_client
from gateway.serving.cluster.hop_mark import HopMarks
from gateway.serving.cluster.own_address import own_address, reaches_no_other
from gateway.serving.cluster.replicas import Replica, new_id, replica_in

SCOPE = {
    "type": "http",
    "method": "POST",
    "raw_path": b"/mcp",
    "query_string": b"",
    "headers": [],
    "client": None,
    "scheme": "http",
}


def test_an_address_that_is_bound_is_the_address() -> None:
    assert own_address("10.0.0.5", 8484, "redis://redis.internal", tls=False) == "http://10.0.0.5:8484"
    assert own_address("fd00::5", 8484, "redis://redis.internal", tls=True) == "https://[fd00::5]:8484"


def test_for_any_address_it_is_that_on_the_way_to_redis() -> None:
    address = own_address("0.0.0.0", 8484, "redis://:secret@127.0.0.1:6379/0", tls=False)
    assert address == "http://127.0.0.1:8484"
    assert reaches_no_other(address)
    assert own_address("0.0.0.0", 1, "unix:///run/redis.sock", tls=False)
    assert not reaches_no_other("http://10.0.0.5:8484")


def test_a_session_says_which_replica_named_it() -> None:
    replica = new_id()
    assert replica_in(f"{replica}.0123") == replica
    for other in ("", ".", "0123", f"{replica}", f"{replica.upper()}Z.1", "../../x.1"):
        assert replica_in(other) is None


@pytest.mark.anyio
async def test_only_a_refused_connection_means_that_a_replica_is_gone() -> None:
    async def receive() -> dict[str, object]:
        raise AssertionError("nothing is read before there is a connection")

    async def send(_: object) -> None:
        raise AssertionError("nothing is sent")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        threading.Thread(target=lambda: listening.accept()[0].close(), daemon=True).start()
        async with forwarding_client() as client:
            forwarder = Forwarder(client, HopMarks("own", lambda: b"k" * 32))
            with pytest.raises((Unreachable, BrokenOff)) as no_tls:  # it speaks no TLS, but it is there
                await forwarder.forward(Replica("a", f"https://127.0.0.1:{port}"), SCOPE, receive, send)
    assert not isinstance(no_tls.value, Unreachable) or not no_tls.value.is_gone
    async with forwarding_client() as client:
        forwarder = Forwarder(client, HopMarks("own", lambda: b"k" * 32))
        with pytest.raises(Unreachable) as refused:
            await forwarder.forward(Replica("a", f"http://127.0.0.1:{port}"), SCOPE, receive, send)
        assert refused.value.is_gone
        with pytest.raises(Unreachable) as unknown:
            await forwarder.forward(Replica("a", "http://no-such-host.invalid:1"), SCOPE, receive, send)
        assert not unknown.value.is_gone

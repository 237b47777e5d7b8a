"""Outgoing HTTP requests: an answer in very many small pieces is taken apart in turns, and heads without end end."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import httpx2
import pytest

from gateway.system.tls import HOOKS, ssl_context
from tests.servers.certificates import write_certificate

pytestmark = pytest.mark.anyio

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PIECES = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n"


def _as_it_is(plain: socket.socket) -> socket.socket:
    return plain


@pytest.fixture
def answered() -> bytes:
    """What the server answers."""
    return PIECES


@pytest.fixture(params=["http", "https"])
def server(request: pytest.FixtureRequest, tmp_path: Path, answered: bytes) -> Iterator[tuple[str, ssl.SSLContext]]:
    """The URL of a server that answers one request, and whom to trust for it."""
    listener, trusted = socket.create_server(("127.0.0.1", 0)), ssl_context()
    encrypted: Callable[[socket.socket], socket.socket] = _as_it_is
    if request.param == "https":
        certificate, key = write_certificate(tmp_path)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        encrypted = partial(context.wrap_socket, server_side=True)
        trusted = ssl.create_default_context(cafile=str(certificate))

    def answer() -> None:
        with suppress(OSError), listener.accept()[0] as plain, encrypted(plain) as connection:
            connection.recv(64 * 1024)
            connection.sendall(answered)

    thread = threading.Thread(target=answer)
    thread.start()
    yield f"{request.param}://127.0.0.1:{listener.getsockname()[1]}/", trusted
    listener.close()
    thread.join(10)


async def test_an_answer_in_small_pieces_leaves_turns_to_others(server: tuple[str, ssl.SSLContext]) -> None:
    (url, trusted), at_once, most = server, 0, 0

    async def others() -> None:
        nonlocal at_once, most
        while True:
            most, at_once = max(most, at_once), 0
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        async with (
            httpx2.AsyncClient(verify=trusted, event_hooks=HOOKS, trust_env=False) as client,
            client.stream("GET", url) as response,
        ):
            async for _ in response.aiter_raw():
                at_once += 1
        tasks.cancel_scope.cancel()
    assert max(most, at_once) < 6_000  # they came by the ten thousand


@pytest.mark.parametrize("answered", [CONTINUE * 100_000 + PIECES], ids=["continue"])
async def test_answers_that_only_ask_to_go_on_end_the_request(server: tuple[str, ssl.SSLContext]) -> None:
    url, trusted = server
    async with httpx2.AsyncClient(verify=trusted, event_hooks=HOOKS, trust_env=False) as client:
        with pytest.raises(httpx2.RemoteProtocolError, match="before the answer"):
            await client.get(url)


@pytest.mark.parametrize("answered", [CONTINUE * 3 + PIECES], ids=["continue"])
async def test_an_answer_may_be_announced(server: tuple[str, ssl.SSLContext]) -> None:
    url, trusted = server
    async with httpx2.AsyncClient(verify=trusted, event_hooks=HOOKS, trust_env=False) as client:
        assert len((await client.get(url)).content) == 100_000

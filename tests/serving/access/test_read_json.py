"""What authorization servers answer: on time and small, or not at all."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from gateway.config.authorization_settings import OidcSettings
from gateway.errors import FetchFailed
from gateway.serving.access.introspection import Introspection
from gateway.serving.access.read_json import post_form, read_json
from gateway.serving.authorization.company_login import CompanyLogin, LoginFailed
from gateway.serving.authorization.pending_requests import PendingLogin, PendingRequests
from gateway.serving.authorization.program_endpoints import Form
from gateway.serving.authorization.sql_state import SqlState
from gateway.serving.authorization.sqlite_database import SqliteDatabase

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n"
SECRET = "canary-of-the-form"

Answer = Callable[[SocketStream], Awaitable[None]]


async def drips(client: SocketStream) -> None:
    """Send a byte now and then: never silent, and never done."""
    await client.send(HEAD)
    while True:
        await client.send(b" ")
        await anyio.sleep(0.01)


async def drips_headers(client: SocketStream) -> None:
    await client.send(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        await client.send(b"x")
        await anyio.sleep(0.01)


async def pours(client: SocketStream) -> None:
    await client.send(HEAD)
    while True:
        await client.send(b" " * 65_536)


def says(response: bytes) -> Answer:
    async def answer(client: SocketStream) -> None:
        await client.send(response)

    return answer


@asynccontextmanager
async def serving(answer: Answer) -> AsyncGenerator[str]:
    """Answer every request in this way, and give the server's URL."""

    async def handle(client: SocketStream) -> None:
        async with client:
            try:
                await client.receive()
                await answer(client)
            except (anyio.BrokenResourceError, anyio.EndOfStream):
                pass

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, handle)
        yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        tasks.cancel_scope.cancel()


def replied(body: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\n%scontent-length: %d\r\nconnection: close\r\n\r\n%s" % (status, headers, len(body), body)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.serving.access.read_json._SECONDS", 0.3)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("answer", [drips, drips_headers])
async def test_a_server_that_drips_is_given_up(answer: Answer) -> None:
    async with serving(answer) as url:
        with anyio.fail_after(5):
            with pytest.raises(FetchFailed, match="did not answer within"):
                await post_form(url, {"token": SECRET})
            with pytest.raises(FetchFailed):
                await read_json(url, trusted=url)


@pytest.mark.usefixtures("impatient")
async def test_neither_introspection_nor_a_company_login_waits_for_a_server_that_drips() -> None:
    metadata = b'{"issuer": "URL", "authorization_endpoint": "URL/a", "token_endpoint": "URL/t", "jwks_uri": "URL/k"}'

    async with serving(drips) as slow:
        with anyio.fail_after(5), pytest.raises(FetchFailed, match="did not answer within"):
            await Introspection(slow, "gateway", "secret").claims("opaque")

    asked: list[bytes] = []

    async def first_metadata(client: SocketStream) -> None:
        asked.append(b"")
        if len(asked) == 1:
            await client.send(replied(metadata.replace(b"URL", url.encode())))
        else:
            await drips(client)

    async with serving(first_metadata) as url:
        settings = OidcSettings(issuer=url, client_id="gateway", people=("*",))
        logins = PendingRequests(SqlState(SqliteDatabase(None)), PendingLogin)
        company = CompanyLogin(settings, "https://gateway.example/authorize/callback", logins)
        page = await company.begin("cookie", "")
        state = page.partition("state=")[2].partition("&")[0]
        with anyio.fail_after(5), pytest.raises(LoginFailed, match="did not answer within"):
            await company.complete("cookie", Form([("state", state), ("code", SECRET)]))
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (pours, "more than 524288 bytes"),
        (says(replied(b"[]")), "not a JSON object"),
        (says(replied(b"{")), "not a JSON object"),
        (says(replied(b"[" * 100_000)), "not a JSON object"),
        (says(replied(b"\xff")), "not a JSON object"),
        (says(replied(SECRET.encode(), b"400 Bad Request")), "answered 400"),
        (says(replied(b"", b"307 Moved", b"location: http://127.0.0.1:1/\r\n")), "answered 307"),
        (says(SECRET.encode()), "RemoteProtocolError"),
        (says(b""), "RemoteProtocolError"),
    ],
    ids=["huge", "list", "cut", "deep", "binary", "refusal", "redirect", "no-http", "nothing"],
)
async def test_an_answer_that_cannot_be_used_is_a_failure_that_quotes_nothing(answer: Answer, words: str) -> None:
    async with serving(answer) as url:
        with anyio.fail_after(10), pytest.raises(FetchFailed, match=words) as failed:
            await post_form(url, {"token": SECRET}, ("user", SECRET))
        assert SECRET not in str(failed.value)


async def test_an_answer_is_read() -> None:
    async with serving(says(replied(b'{"active": true}'))) as url:
        assert await post_form(url, {"token": SECRET}) == {"active": True}

"""Logins that change while an upstream is used: no request, list or subscription gets into another's account."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.errors import LoginRequired, UpstreamError
from gateway.upstream import Catalogues, RequestContext, Upstream, Upstreams, UpstreamState
from gateway.upstream.authorization.logins import UpstreamLogins
from gateway.upstream.authorization.ports import ClientIdentification, Credentials, LoginKey, Tokens
from tests.upstream.authorization.conftest import MemoryVault
from tests.upstream.authorization.oauth_servers import AuthorizationServer, ProtectedServer, served

pytestmark = pytest.mark.anyio

URI = "mail://inbox"


@dataclass
class Asked:
    """A message that the server got: the account of its token, its method and parameters."""

    account: str | None
    method: str
    params: dict[str, Any]


@dataclass
class Accounts(ProtectedServer):
    """An MCP server with a tool for each account; a token is the name of one. `wants_login` without a token."""

    server: AuthorizationServer = field(default_factory=AuthorizationServer)
    wants_login: bool = False
    asked: list[Asked] = field(default_factory=list[Asked])
    breaks_off: bool = False
    """Whether the stream with the answer to a call ends before the answer."""
    held: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])
    """Events that have to happen before messages of these methods are answered."""
    news: anyio.Event = field(default_factory=anyio.Event)

    def routes(self) -> list[Route]:
        return [Route("/mcp", self._serve, methods=["POST", "GET", "DELETE"])]

    def of(self, method: str) -> list[tuple[str | None, Any]]:
        """The accounts of the messages of a method, each with what it was about."""
        return [
            (each.account, each.params.get("arguments", {}).get("by") or each.params.get("uri"))
            for each in self.asked
            if each.method == method
        ]

    def let_go(self, method: str) -> None:
        """Answer the messages of a method from now on."""
        self.held.pop(method).set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.news.wait()

    async def _serve(self, request: Request) -> Response:
        account = (request.headers.get("authorization") or "").removeprefix("Bearer ") or None
        if request.method != "POST":
            return self._refused(request, account)
        message = json.loads(await request.body())
        method = message.get("method", "")
        self._note(Asked(account, method, message.get("params") or {}))
        if account is None and self.wants_login:
            return Response(status_code=401, headers={"www-authenticate": "Bearer"})
        if "id" not in message:
            return Response(status_code=202)
        if method == "tools/call" and self.breaks_off:
            return Response(b"retry: 1\nid: 7\ndata: \n\n", media_type="text/event-stream")
        if method in self.held:
            await self.held[method].wait()
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"], **_answered(method, account)}
        return JSONResponse(answer, headers={"mcp-session-id": f"of-{account}"} if method == "initialize" else None)

    def _refused(self, request: Request, account: str | None) -> Response:
        """Answer a GET or a DELETE; a stream is not resumed with a token that was good before."""
        self._note(Asked(account, request.method, {}))
        if "last-event-id" in request.headers:
            return Response(status_code=401, headers={"www-authenticate": "Bearer"})
        return Response(status_code=405)

    def _note(self, asked: Asked) -> None:
        self.asked.append(asked)
        self.news.set()
        self.news = anyio.Event()


def _answered(method: str, account: str | None) -> dict[str, Any]:
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {"subscribe": True}},
            "serverInfo": {"name": "accounts", "version": "1"},
            "instructions": f"for {account}",
        },
        "tools/list": {"tools": [{"name": f"of_{account}", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": str(account)}]},
        "resources/list": {"resources": [{"uri": URI, "name": "inbox"}]},
        "resources/templates/list": {"resourceTemplates": []},
        "resources/subscribe": {},
        "resources/unsubscribe": {},
        "ping": {},
    }
    return {"result": results[method]} if method in results else {"error": {"code": -32601, "message": "no"}}


class Given:
    """The logins that were given: a token for each principal."""

    def __init__(self, **tokens: str) -> None:
        self.tokens = tokens

    async def token(self, upstream: str, principal: str, url: str | None = None) -> Credentials | None:
        return Credentials(self.tokens[principal]) if principal in self.tokens else None

    async def challenged(
        self,
        upstream: str,
        principal: str,
        sent: Credentials | None,
        status: int,
        www_authenticate: Sequence[str],
        url: str | None = None,
    ) -> Credentials | None:
        if (token := await self.token(upstream, principal)) in (None, sent):
            raise LoginRequired(upstream)
        return token

    async def principals(self, upstream: str) -> list[str]:
        return list(self.tokens)


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is not announced."""
    while not condition():  # noqa: ASYNC110
        await anyio.sleep(0.01)


@dataclass
class Opened:
    """An upstream of `server`, with logins."""

    server: Accounts
    logins: Given
    upstreams: Upstreams
    changes: list[tuple[str, str]]

    @property
    def upstream(self) -> Upstream:
        return self.upstreams["x"]

    def log_in(self, principal: str, account: str) -> None:
        self.logins.tokens[principal] = account
        self.upstreams.logged_in("x", principal)

    async def call(self, principal: str, session: str | None = None) -> str:
        """Call a tool, and return the account that it used, or the failure."""
        params = {"name": "look", "arguments": {"by": principal}}
        try:
            result = await self.upstream.request("tools/call", params, RequestContext(caller(principal, session)))
        except UpstreamError as error:
            return error.failure.message
        return result["content"][0]["text"]


def caller(principal: str, session: str | None = None, **given: Any) -> Caller:
    return Caller(revision="2025-11-25", client_name="host", principal=principal, session=session or principal, **given)


@asynccontextmanager
async def opened(logins: Given, *, wants_login: bool = False, **given: Any) -> AsyncGenerator[Opened]:
    server, changes = Accounts(wants_login=wants_login), list[tuple[str, str]]()
    with anyio.fail_after(30):
        async with served(server):
            settings = {"x": UpstreamSettings.model_validate({"url": server.url, **given})}
            known: Any = logins
            async with Upstreams(settings, on_change=lambda *each: changes.append(each[:3]), logins=known) as upstreams:
                yield Opened(server, logins, upstreams, changes)


@pytest.mark.parametrize("session", ["shared", "host-session"])
async def test_a_call_that_waits_is_not_sent_with_the_login_of_the_operator(session: str) -> None:
    async with opened(Given(), session=session, limits={"calls": 1}) as one, anyio.create_task_group() as tasks:
        assert await one.upstream.ready(20)
        one.server.held["tools/call"] = anyio.Event()
        answers: list[str] = []

        async def call() -> None:
            answers.append(await one.call("bob"))

        tasks.start_soon(call)
        await one.server.until(lambda: len(one.server.of("tools/call")) == 1)
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        one.log_in("local", "operator")
        assert await one.upstream.ready(20)
        one.server.let_go("tools/call")
        await until(lambda: len(answers) == 2)
        assert ("operator", "bob") not in one.server.of("tools/call")
        assert answers[1] == "None"


async def test_a_call_that_waits_for_a_session_which_a_login_ends_is_sent_in_another() -> None:
    async with opened(Given(), limits={"calls": 1}) as one, anyio.create_task_group() as tasks:
        assert await one.upstream.ready(20)
        assert await one.call("bob") == "None"  # has the default connection
        one.server.held["tools/call"] = anyio.Event()
        answers: list[str] = []

        async def call() -> None:
            answers.append(await one.call("eve"))

        tasks.start_soon(call)
        await one.server.until(lambda: (None, "eve") in one.server.of("tools/call"))
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        one.logins.tokens["eve"] = "eves"
        one.log_in("local", "operator")
        one.server.let_go("tools/call")
        await until(lambda: len(answers) == 2)
        assert answers[1] == "eves"


@pytest.mark.parametrize("principal", ["local", "bob"])
async def test_a_call_that_waits_while_its_principal_logs_out_says_that_a_login_is_needed(principal: str) -> None:
    logins = Given(local="locals", bob="bobs")
    async with opened(logins, wants_login=True, limits={"calls": 1}) as one, anyio.create_task_group() as tasks:
        assert await one.upstream.ready(20)
        assert await one.call(principal) == f"{principal}s"
        one.server.held["tools/call"] = anyio.Event()
        answers: list[str] = []

        async def call() -> None:
            answers.append(await one.call(principal))

        tasks.start_soon(call)
        await one.server.until(lambda: len(one.server.of("tools/call")) == 2)
        tasks.start_soon(call)
        await anyio.sleep(0.2)  # it waits for its turn
        del logins.tokens[principal]
        one.upstream.logged_out(principal)
        one.server.let_go("tools/call")
        await until(lambda: len(answers) == 2)
        assert "is being connected with another login" in answers[0]  # it was sent with the login that has ended
        assert answers[1] == "waits for a login"
        assert names(one.upstream, caller(principal)) == []
        one.log_in(principal, "next")
        assert await one.call(principal) == "next"


async def test_a_subscription_outlasts_a_logout() -> None:
    async with opened(Given(local="locals", bob="bobs"), wants_login=True) as one:
        assert await one.upstream.ready(20)
        unsubscribe = await one.upstream.subscribe(URI, caller("bob"))
        del one.logins.tokens["bob"]
        await one.server.until(lambda: ("bobs", URI) in one.server.of("resources/subscribe"))
        one.upstream.logged_out("bob")
        one.log_in("bob", "again")
        await one.server.until(lambda: ("again", URI) in one.server.of("resources/subscribe"))
        unsubscribe()


async def test_a_server_that_was_replaced_gets_no_token_for_its_successor() -> None:
    vault, before, after = MemoryVault(), Accounts(), Accounts()
    known = dict[str, Upstreams]()
    logins = UpstreamLogins(vault, lambda name: known["all"].settings_of(name))
    with anyio.fail_after(30):
        async with served(before, after):
            for server, account in ((before, "before"), (after, "after")):
                vault.kept[LoginKey("local", "x", account)] = Tokens(
                    access_token=account, url=server.url, token_endpoint="", client=ClientIdentification(client_id="")
                )
            settings = {"x": UpstreamSettings(url=before.url)}
            known["all"] = upstreams = Upstreams(settings, on_change=lambda *_: None, logins=logins)
            async with upstreams:
                assert await upstreams["x"].ready(20)
                upstreams.apply({"x": UpstreamSettings(url=after.url)})
                await before.until(lambda: bool(before.of("DELETE")))
                assert await upstreams["x"].ready(20)
        assert {each.account for each in before.asked} == {"before", None}
        assert {each.account for each in after.asked} == {"after"}


@pytest.mark.parametrize("client", ["gateway", "sdk"])
async def test_a_call_whose_answer_broke_off_is_not_one_that_waits_for_a_login(client: str) -> None:
    async with opened(Given(local="local"), http_client=client) as one:
        assert await one.upstream.ready(20)
        one.server.breaks_off = True
        assert "waits for a login" not in await one.call("local")
        assert len(one.server.of("tools/call")) == 1


async def test_another_login_leaves_neither_sessions_nor_lists_of_the_last_one() -> None:
    async with opened(Given(local="first")) as one:
        other_kind = caller("local", capabilities={"roots": {}})
        assert await one.upstream.ready(20)
        await one.upstream.request("tools/call", {"name": "look", "arguments": {}}, RequestContext(other_kind))
        assert names(one.upstream, other_kind) == ["of_first"]
        one.log_in("local", "second")
        await until(lambda: names(one.upstream) == ["of_second"])
        assert names(one.upstream, other_kind) == ["of_second"]
        before = len(one.server.of("initialize"))
        await one.upstream.request("tools/call", {"name": "look", "arguments": {}}, RequestContext(other_kind))
        assert one.server.of("initialize")[before:] == [("second", None)]


async def test_a_login_while_the_upstream_starts_is_used_at_once() -> None:
    async with opened(Given()) as one:
        one.server.held["initialize"] = one.server.held["server/discover"] = anyio.Event()
        await one.server.until(lambda: bool(one.server.asked))
        one.log_in("local", "operator")
        await one.server.until(lambda: any(each.account == "operator" for each in one.server.asked))
        one.server.let_go("initialize")
        assert await one.upstream.ready(20)
        assert names(one.upstream) == ["of_operator"]
        assert one.upstream.counts.restarts == 0


@pytest.mark.parametrize("other", [{"principal": "token"}, {"name": "y"}])
async def test_lists_behind_a_login_are_remembered_for_their_owner_alone(tmp_path: Path, other: dict[str, str]) -> None:
    server, catalogues = Accounts(wants_login=True), Catalogues(tmp_path)
    logins: Any = Given(local="local")

    def made(principal: str = "local", name: str = "x") -> Upstream:
        settings = {name: UpstreamSettings(url=server.url)}
        given = Upstreams(
            settings, on_change=lambda *_: None, logins=logins, principal=principal, catalogues=catalogues
        )
        return given[name]

    async with served(server), anyio.create_task_group() as tasks:
        with anyio.fail_after(30):
            first = made()
            tasks.start_soon(first.run)
            assert await first.ready(20)
            await until(lambda: bool(names(made())))  # written in the background
            assert made().instructions == "for local"
            another = made(**other)
            assert (names(another), another.instructions) == ([], None)
            logins.tokens.clear()
            first.logged_out("local")
            await until(lambda: not names(made()))
            assert made().instructions is None
            first.stop()
    assert "of_local" not in "".join(path.read_text("ascii") for path in tmp_path.iterdir())
    assert first.state is UpstreamState.STOPPED


async def test_a_subscription_stays_with_its_principal() -> None:
    async with opened(Given()) as one:
        assert await one.upstream.ready(20)
        unsubscribe = await one.upstream.subscribe(URI, caller("bob"))
        ours = await one.upstream.subscribe(URI, caller("local"))
        one.log_in("local", "operator")
        await one.server.until(lambda: ("operator", URI) in one.server.of("resources/subscribe"))
        ours()
        await one.server.until(lambda: ("operator", URI) in one.server.of("resources/unsubscribe"))
        one.log_in("bob", "bobs")
        await one.server.until(lambda: ("bobs", URI) in one.server.of("resources/subscribe"))
        assert one.upstream.for_principal("bob").is_busy  # so it is not ended as unused
        unsubscribe()
        assert not one.upstream.for_principal("bob").is_busy


async def test_a_login_of_the_operator_takes_no_subscription_of_another_principal() -> None:
    async with opened(Given()) as one:
        assert await one.upstream.ready(20)
        await one.upstream.subscribe(URI, caller("bob"))
        one.log_in("local", "operator")
        await until(lambda: names(one.upstream) == ["of_operator"])
        (await one.upstream.subscribe("mail://sent", caller("local")))()
        assert ("operator", URI) not in one.server.of("resources/subscribe")


def names(upstream: Upstream, of: Caller | None = None) -> list[str]:
    return [tool["name"] for tool in upstream.lists_for(of).tools]

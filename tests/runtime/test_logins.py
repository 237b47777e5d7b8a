"""Two people behind one gateway, with an upstream that wants a login of each: neither gets what is the other's."""

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.audit_settings import AuditSettings
from gateway.config.http_settings import HttpSettings
from gateway.config.login_settings import LoginSettings
from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.grant import EVERYTHING
from gateway.runtime import Gateway, run_gateway
from gateway.serving.access import Access
from gateway.serving.logins.routes import login_routes
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from gateway.telemetry.audit.verify import records_of
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "servers" / "login_server.py"
PEOPLE = ("alice", "bob")
MODES = ("auto", "legacy")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which logins are kept."""
    monkeypatch.setenv("MCP_GATEWAY_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("MCP_GATEWAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "state"


@asynccontextmanager
async def login_server(*flags: str) -> AsyncGenerator[str]:
    """tests/servers/login_server.py; gives its origin."""
    async with await anyio.open_process([sys.executable, str(SERVER), *flags], stderr=None) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{(await process.stdout.receive()).decode().strip()}"
        finally:
            process.kill()


@dataclass
class Served:
    """A gateway in front of a server that wants logins."""

    url: str
    origin: str
    running: Gateway

    async def seen(self) -> list[list[str | None]]:
        """The requests that the server had: method, account, Authorization."""
        async with httpx2.AsyncClient(trust_env=False) as http:
            return (await http.get(f"{self.origin}/seen")).json()


@asynccontextmanager
async def serving(*flags: str, people: tuple[str, ...] = PEOPLE, audit: Path | None = None) -> AsyncGenerator[Served]:
    async with login_server(*flags) as origin:
        upstreams = {"notes": UpstreamSettings(url=f"{origin}/mcp")}
        tokens = {name: TokenSettings(token=token_of(name)) for name in people}
        settings = Settings(
            upstreams=upstreams,
            http=HttpSettings(port=0),
            access=AccessSettings(tokens=tokens),
            audit=AuditSettings(path=audit),
            logins=LoginSettings(key="a key for the tests of logins"),
        )
        async with run_gateway(settings, over_http=True) as running:
            access = Access(settings.http, settings.access)
            app = http_app(
                running.router,
                settings.http,
                Identity("gateway", "1", others=running.router.introductions),
                access=access,
                public=login_routes(running.login_desk),
            )
            async with anyio.create_task_group() as tasks:
                bound = asyncio.Queue[int]()
                tasks.start_soon(partial(serve_http, app, settings.http, on_bound=bound.put_nowait))
                url = f"http://127.0.0.1:{await bound.get()}"

                async def place(_: str) -> str:
                    return url

                running.login_desk.serve_at(place)
                yield Served(url, origin, running)
                tasks.cancel_scope.cancel()


def token_of(name: str) -> str:
    return f"{name}-" * 5


@asynccontextmanager
async def host(
    served: Served, name: str, mode: str, elicitation: Callable[..., Any] | None = None
) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token_of(name)}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=mode, cache=None, elicitation_callback=elicitation) as client:
            yield client


class Browser:
    """A person's browser, with the person's account at the server."""

    def __init__(self, account: str) -> None:
        self.cookies = httpx2.Cookies({"account": account})

    async def get(self, url: str, *, follow: bool = True) -> httpx2.Response:
        async with httpx2.AsyncClient(cookies=self.cookies, follow_redirects=follow, trust_env=False) as http:
            answer = await http.get(url)
            self.cookies = http.cookies
        return answer

    async def log_in(self, link: str) -> httpx2.Response:
        """Open the link, agree, and log in; return the last page."""
        return await self.agree(await self.get(link))

    async def agree(self, page: httpx2.Response, *, follow: bool = True) -> httpx2.Response:
        further = re.search(r'href="(\?continue=[0-9a-f]+)"', page.text)
        assert further, page.text
        return await self.get(str(page.url.join(further[1])), follow=follow)


def text_of(result: Any) -> str:
    return result.content[0].model_dump()["text"]


def link_in(text: str) -> str:
    found = re.search(r"http://\S+", text)
    assert found, text
    return found[0]


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("mode", MODES)
async def test_each_logs_in_by_a_link_and_has_tools_and_answers_of_the_own_account(mode: str) -> None:
    with anyio.fail_after(60):
        async with serving() as served, host(served, "alice", mode) as alice, host(served, "bob", mode) as bob:
            for client in (alice, bob):
                offered = await names(client)
                assert "gateway_login" in offered
                assert not [name for name in offered if name.startswith("notes__")]
            answer = await alice.call_tool("gateway_login", {"upstream": "notes"})
            assert answer.is_error
            assert "ask the user to open" in text_of(answer)
            done = await Browser("alices").log_in(link_in(text_of(answer)))
            assert "You can close this page" in done.text

            assert "listed now" in text_of(await alice.call_tool("gateway_login", {"upstream": "notes"}))
            assert text_of(await alice.call_tool("notes__whoami", {})) == "you are alices"
            assert "notes__of_alices" in await names(alice)
            assert "gateway_login" not in await names(alice)

            # Bob has nothing of this: no tool, no answer, no state.
            assert not [name for name in await names(bob) if name.startswith("notes__")]
            refused = await bob.call_tool("notes__whoami", {})
            assert refused.is_error
            assert "waits for a login" in text_of(refused)
            login = await bob.call_tool("gateway_login", {"upstream": "notes"})
            await Browser("bobs").log_in(link_in(text_of(login)))
            assert text_of(await bob.call_tool("notes__whoami", {})) == "you are bobs"
            assert text_of(await alice.call_tool("notes__whoami", {})) == "you are alices"
            assert "notes__of_alices" not in await names(bob)
            assert "notes__of_bobs" not in await names(alice)


@pytest.mark.parametrize("mode", MODES)
async def test_a_host_that_opens_links_logs_in_during_the_call(mode: str) -> None:
    asked: list[Any] = []

    async def open_link(context: Any, params: Any) -> ElicitResult:
        del context
        asked.append(params)
        done = await Browser("alices").log_in(params.url)
        assert "You can close this page" in done.text
        return ElicitResult(action="accept")

    with anyio.fail_after(60):
        async with serving() as served, host(served, "alice", mode, open_link) as alice:
            assert "gateway_login" in await names(alice)
            answer = await alice.call_tool("gateway_login", {"upstream": "notes"})
            assert "listed now" in text_of(answer)
            [params] = asked
            assert params.mode == "url"
            assert "notes wants you to log in" in params.message
            assert text_of(await alice.call_tool("notes__whoami", {})) == "you are alices"
            # The server ends all logins: the next call asks again, and goes on by itself.
            async with httpx2.AsyncClient(trust_env=False) as http:
                await http.post(f"{served.origin}/revoke-all")
            assert text_of(await alice.call_tool("notes__whoami", {})) == "you are alices"
            assert len(asked) == 2


async def test_a_declined_login_is_told_with_the_link() -> None:
    async def decline(context: Any, params: Any) -> ElicitResult:
        del context, params
        return ElicitResult(action="decline")

    with anyio.fail_after(60):
        async with serving() as served, host(served, "alice", "legacy", decline) as alice:
            assert "gateway_login" in await names(alice)
            answer = await alice.call_tool("gateway_login", {"upstream": "notes"})
            assert answer.is_error
            assert link_in(text_of(answer)).startswith(served.url)


async def test_a_link_is_for_one_browser_one_login_and_its_own_principal() -> None:
    with anyio.fail_after(60):
        async with serving() as served, host(served, "alice", "legacy") as alice:
            await names(alice)
            first, second = [
                link_in(text_of(await alice.call_tool("gateway_login", {"upstream": "notes"}))) for _ in range(2)
            ]
            assert first == second
            # Another page cannot go on in the place of the person, nor another browser come back.
            mine, other = Browser("alices"), Browser("mallorys")
            page = await mine.get(first)
            assert "<strong>alice</strong>" in page.text
            assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
            for guess in ("0" * 64, "%C3%A9"):
                guessed = await other.get(f"{first}?continue={guess}")
                assert "Continue only if that is you" in guessed.text
            onward = await mine.agree(page, follow=False)
            back = (await mine.get(onward.headers["location"], follow=False)).headers["location"]
            assert back.startswith(f"{served.url}/oauth/callback")
            stolen = await other.get(back)
            assert stolen.status_code == 400
            assert "begun in another browser" in stolen.text
            # An abandoned login is begun again with the same link, which then works no longer.
            done = await mine.log_in(first)
            assert done.status_code == 200
            assert "used already" in (await mine.get(first)).text
            assert (await mine.get(str(done.url))).status_code == 400
            assert text_of(await alice.call_tool("notes__whoami", {})) == "you are alices"


async def test_a_refused_login_says_so_and_can_be_begun_again() -> None:
    with anyio.fail_after(60):
        async with serving() as served, host(served, "alice", "legacy") as alice:
            await names(alice)
            link = link_in(text_of(await alice.call_tool("gateway_login", {"upstream": "notes"})))
            refused = await Browser("nobody").log_in(link)
            assert refused.status_code == 400
            assert "Not logged in" in refused.text
            assert (await Browser("alices").log_in(link)).status_code == 200


async def test_a_login_ends_and_with_it_all_that_it_opened() -> None:
    with anyio.fail_after(60):
        async with serving() as served, host(served, "alice", "legacy") as alice:
            await names(alice)
            link = link_in(text_of(await alice.call_tool("gateway_login", {"upstream": "notes"})))
            await Browser("alices").log_in(link)
            assert text_of(await alice.call_tool("notes__whoami", {})) == "you are alices"
            await served.running.log_out("notes", "alice")
            assert not await served.running.upstreams["notes"].for_principal("alice").ready(30)
            offered = await names(alice)
            assert "gateway_login" in offered
            assert "notes__whoami" not in offered
            assert "waits for a login" in text_of(await alice.call_tool("notes__whoami", {}))


async def test_a_server_that_wants_a_login_for_calls_alone_is_shared_until_then(state: Path) -> None:
    with anyio.fail_after(60):
        async with serving("open-lists") as served:
            async with host(served, "alice", "legacy") as alice, host(served, "bob", "legacy") as bob:
                await served.running.upstreams["notes"].ready(30)
                assert "notes__whoami" in await names(alice)
                answer = await alice.call_tool("notes__whoami", {})
                await Browser("alices").log_in(link_in(text_of(answer)))
                assert text_of(await alice.call_tool("notes__whoami", {})) == "you are alices"
                assert "notes__whoami" in await names(bob)
                assert "waits for a login" in text_of(await bob.call_tool("notes__whoami", {}))
                assert "notes__of_alices" not in await names(bob)
            accounts = {account for _, account, _ in await served.seen()}
            assert accounts == {None, "alices"}
        # Nothing that was written or would be shown has a token in it.
        kept = (state / "logins.json").read_text("utf-8")
        assert "access-" not in kept
        assert '"alice"' in kept


async def test_logins_are_audited_and_their_links_are_not(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    with anyio.fail_after(60):
        async with serving(audit=path) as served, host(served, "alice", "legacy") as alice:
            await names(alice)
            link = link_in(text_of(await alice.call_tool("gateway_login", {"upstream": "notes"})))
            await Browser("nobody").log_in(link)
            await Browser("alices").log_in(link)
            await served.running.log_out("notes", "alice")
    logins = [line for line in records_of(path) if line["event"] == "login"]
    assert {(line["principal"], line["upstream"]) for line in logins} == {("alice", "notes")}
    assert [line["outcome"] for line in logins] == ["failed", "ok", "logged out"]
    assert logins[1]["issuer"] == served.origin
    assert link.rpartition("/")[2] not in path.read_text("utf-8")


@pytest.mark.parametrize("client", ["gateway", "sdk"])
async def test_logins_are_there_after_a_restart_and_for_their_principal_alone(client: Any) -> None:
    with anyio.fail_after(60):
        async with login_server() as origin:
            settings = Settings(
                upstreams={"notes": UpstreamSettings(url=f"{origin}/mcp", http_client=client)},
                logins=LoginSettings(key="a key for the tests of logins"),
            )
            async with run_gateway(settings) as first:
                upstream = first.upstreams["notes"]
                assert not await upstream.ready(30)
                assert upstream.state is UpstreamState.LOGIN
                pending = await first.logins.begin("notes", "local", "http://127.0.0.1:9/oauth/callback")
                async with httpx2.AsyncClient(trust_env=False) as http:
                    answer = await http.get(pending.url)
                back = httpx2.URL(answer.headers["location"])
                await first.logins.complete(pending.state, dict(back.params))
                upstream.logged_in("local")
                assert await upstream.ready(30)
            async with run_gateway(settings) as second:
                upstream = second.upstreams["notes"]
                assert await upstream.ready(30)
                assert [tool["name"] for tool in upstream.tools()] == ["whoami", "of_somebody"]
                told = second.router.introductions
                assert [text for _, text in told.reached_by(EVERYTHING, "local").parts] == ["for somebody"]
                assert told.reached_by(EVERYTHING, "alice").parts == ()
                other = upstream.for_principal("alice")
                assert other is not upstream
                assert not await other.ready(30)
                assert other.state is UpstreamState.LOGIN
                assert other.tools() == ()

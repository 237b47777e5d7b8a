"""One gateway in the cloud, two people, hosts that can send no header, and two upstreams that want a login of each.

Each person approves in a real browser, logs in to both upstreams, and calls. Nothing of one is ever the other's.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from tests.conftest import ROOT
from tests.real.cloud_edge import Edge, cloud_edge
from tests.real.conftest import COMMAND, PATIENCE, environment
from tests.real.oauth_hosts import Memory, host_of
from tests.serving.authorization.sites import Reply, site

pytestmark = pytest.mark.anyio

SERVERS = ROOT / "tests" / "servers"
PASSPHRASES = {"alice": "correct horse battery", "bob": "staple that goes on"}
ACCOUNTS = {"alice": "alices-account", "bob": "bobs-account"}
"""Whom the upstreams know."""
UPSTREAMS = ("notes", "photos")
MODERN = "2026-07-28"
TASKS = "io.modelcontextprotocol/tasks"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "A host", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS: {}}},
}
A_MINUTE = 60
"""After which a revoked host is refused at the latest."""

CONFIG = """
[gateway]
public_url = {url}
profile = "cloud"
[http]
port = 0
trusted_proxies = ["127.0.0.1"]
[logging]
level = "debug"
[audit]
path = {audit}
arguments = "full"
[logins]
key = "a key for the logins of this test"
[profiles.cloud]
extends = "text-only"
sets = {{ content_url.show = "beside", wait.tools_list = 60 }}
[upstreams.notes]
url = {notes}
[upstreams.photos]
url = {photos}
[upstreams.errands]
command = {python}
args = [{errands}, "--era", "modern"]
"""


@contextmanager
def started(command: list[str], line: str, env: Mapping[str, str], said: list[str]) -> Generator[str]:
    """Run a program; gives the rest of its first line that begins with `line`. `said` gets all of its lines."""
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            for first in process.stdout:
                said.append(first)
                if first.startswith(line):
                    break
            else:
                pytest.fail("it did not start:\n" + "".join(said), pytrace=False)
            rest = Thread(target=said.extend, args=[process.stdout], daemon=True)
            rest.start()
            yield first.removeprefix(line).strip()
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) in (0, -signal.SIGTERM), "".join(said)
            rest.join(PATIENCE)
        finally:
            process.kill()


@dataclass
class Upstream:
    """A server that wants a login: tests/servers/login_server.py."""

    origin: str

    def seen(self) -> list[tuple[str, str | None, str | None]]:
        """The method, the account and the Authorization of each request."""
        return [tuple(each) for each in httpx2.get(f"{self.origin}/seen", trust_env=False).json()]


@dataclass
class Cloud:
    """The gateway as it is reached from the cloud."""

    edge: Edge
    folder: Path
    upstreams: dict[str, Upstream]
    run: Callable[..., str]
    """A command of the gateway's, with its configuration; returns what it printed."""
    said: list[str] = field(default_factory=list[str])
    """The gateway's log."""

    @property
    def endpoint(self) -> str:
        return f"{self.edge.url}/mcp"

    @property
    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "audit.jsonl").read_text("utf-8").splitlines()]

    def http(self, **options: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(verify=self.edge.trust, timeout=PATIENCE, trust_env=False, **options)


@contextmanager
def in_the_cloud(folder: Path) -> Generator[Cloud]:
    """Serve a gateway for both people and both upstreams, and one more that gives tasks, with all of its files here."""
    config = folder / "mcp-gateway.toml"
    env = environment(MCP_GATEWAY_STATE=str(folder / "state"))

    def run(*words: str, stdin: str = "") -> str:
        command = [sys.executable, "-m", "gateway", *words]
        done = subprocess.run(command, input=stdin, env=env, cwd=folder, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    def server(*flags: str) -> Any:
        return started([sys.executable, str(SERVERS / "login_server.py"), *flags], "", env, [])

    with cloud_edge(folder) as edge, server("pictures") as notes, server("pictures") as photos:
        upstreams = {"notes": Upstream(f"http://127.0.0.1:{notes}"), "photos": Upstream(f"http://127.0.0.1:{photos}")}
        values = {
            "url": edge.url,
            "audit": str(folder / "audit.jsonl"),
            **{name: f"{upstream.origin}/mcp" for name, upstream in upstreams.items()},
            "python": sys.executable,
            "errands": str(SERVERS / "bridge_server.py"),
        }
        config.write_text(CONFIG.format(**{name: json.dumps(value) for name, value in values.items()}), "utf-8")
        for name, passphrase in PASSPHRASES.items():
            run("person", "add", name, stdin=f"{passphrase}\n")
        with config.open("a", encoding="utf-8") as file:
            file.write("\n[access.authorization_server]\n")
        cloud = Cloud(edge, folder, upstreams, run)
        with started([*COMMAND, "--config", str(config), "--http"], "listening on ", env, cloud.said) as where:
            edge.backend = where.split()[0].removesuffix("/mcp")
            yield cloud


class Person:
    """A person with a host that speaks OAuth, and with an account at the upstreams."""

    def __init__(self, name: str, cloud: Cloud, approve: Callable[[str, str], str], callback: str) -> None:
        self.name, self.cloud, self.account = name, cloud, ACCOUNTS[name]
        self.memory = Memory()
        self.auth = host_of(name, cloud.endpoint, self.memory, approve, callback)
        self.sessions: set[str] = set()
        self.asked: list[str] = []
        """The questions that the host showed."""
        self.links: list[str] = []
        """Where the person was to log in."""

    @property
    def token(self) -> str:
        assert self.memory.tokens is not None
        return self.memory.tokens.access_token

    @property
    def tokens(self) -> tuple[str, str]:
        assert self.memory.tokens is not None
        assert self.memory.tokens.refresh_token is not None
        return self.token, self.memory.tokens.refresh_token

    @property
    def given(self) -> str:
        """Everything that the gateway has answered to the token of this person's host."""
        return self.cloud.edge.answers[f"Bearer {self.token}"].decode("utf-8", "replace")

    @asynccontextmanager
    async def connected(self, *, opens_links: bool) -> AsyncGenerator[Client]:
        """The host, with a session; `opens_links`: it has URL elicitation."""

        async def remember(answer: httpx2.Response) -> None:
            if "mcp-session-id" in answer.headers:
                self.sessions.add(answer.headers["mcp-session-id"])

        async def open_link(context: Any, params: Any) -> ElicitResult:
            del context
            self.asked.append(params.message)
            await self.log_in(params.url)
            return ElicitResult(action="accept")

        async with self.cloud.http(auth=self.auth, event_hooks={"response": [remember]}) as http:
            transport = streamable_http_client(self.cloud.endpoint, http_client=http)
            answers = open_link if opens_links else None
            async with Client(transport, mode="legacy", cache=None, elicitation_callback=answers) as client:
                yield client

    async def log_in(self, link: str) -> None:
        """Follow a link to an upstream's login, agree to go on, and come back with the own account."""
        assert link.startswith(f"{self.cloud.edge.url}/oauth/login/")
        self.links.append(link)
        async with self.cloud.http(cookies={"account": self.account}, follow_redirects=True) as browser:
            page = await browser.get(link)
            assert f"<strong>{self.name}</strong>" in page.text
            onward = re.search(r'href="(\?continue=[0-9a-f]+)"', page.text)
            assert onward is not None, page.text
            done = await browser.get(page.url.join(onward[1]))
            assert done.status_code == 200, done.text

    async def post(self, method: str, params: Mapping[str, Any], **headers: str) -> httpx2.Response:
        """Send one request of 2026-07-28, which has no sessions, or with these headers one of another revision."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
        named = params.get("name", params.get("taskId", ""))
        modern = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, "Mcp-Name": named}
        accepted = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {self.token}"}
        async with self.cloud.http() as http:
            return await http.post(self.cloud.endpoint, json=message, headers={**accepted, **(headers or modern)})


@contextmanager
def browsers(cloud: Cloud, chromium: str) -> Generator[tuple[Callable[[str, str], str], str, list[Any]]]:
    """Give a function that has a person approve in chromium, the address of the hosts, and what the people saw."""
    arrived: Queue[str] = Queue()
    seen: list[Any] = []

    def answer(path: str, *_: Any) -> Reply:
        if path.startswith("/callback"):
            arrived.put(path)
            return Reply(303, {"Location": "/done"})
        return Reply(body=b"done")

    def approve(page: str, person: str) -> str:
        assert page.startswith(f"{cloud.edge.url}/authorize?")
        script = str(ROOT / "tests" / "real" / "apps" / "approve.mjs")
        words = [page, person, PASSPHRASES[person], str(cloud.folder), cloud.edge.key_hash]
        command = ["node", script, chromium, *words]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        seen.append(json.loads(done.stdout))
        return arrived.get(timeout=PATIENCE)

    with site(answer) as address:
        yield approve, f"http://{address}/callback", seen


def text_of(result: Any) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match[0]


async def names(client: Client) -> set[str]:
    """The tools of the upstreams that want a login."""
    listed = {tool.name for tool in (await client.list_tools()).tools}
    return {name for name in listed if name.startswith(UPSTREAMS)}


async def called(client: Client, tool: str, **arguments: Any) -> str:
    return text_of(await client.call_tool(tool, arguments))


async def log_in_by_elicitation(person: Person, client: Client) -> None:
    for upstream in UPSTREAMS:
        assert "listed now" in await called(client, "gateway_login", upstream=upstream)
    assert [question.partition(" ")[0] for question in person.asked] == list(UPSTREAMS)


async def log_in_by_links(person: Person, client: Client) -> None:
    """Log in where somebody else is logged in already: nothing of theirs can be seen or called before."""
    assert await names(client) == set()
    for upstream in UPSTREAMS:
        assert "waits for a login" in await called(client, f"{upstream}__whoami")
        await person.log_in(found(r"https://\S+", await called(client, "gateway_login", upstream=upstream)))


async def check_accounts(person: Person, client: Client) -> None:
    """Each upstream knows the person by their own account, and lists the tools of that."""
    for upstream in UPSTREAMS:
        assert await called(client, f"{upstream}__whoami") == f"you are {person.account}"
    own = ("whoami", "picture", f"of_{person.account}")
    assert await names(client) == {f"{upstream}__{tool}" for upstream in UPSTREAMS for tool in own}


async def check_handles(owner: Person, hers: Client, other: Person, his: Client) -> None:
    """The same picture has another handle for each person, which is nothing for the other, nor is its link."""
    words, others = await called(hers, "photos__picture"), await called(his, "photos__picture")
    handle, foreign = found(r"img_\w+", words), found(r"img_\w+", others)
    assert handle != foreign
    assert handle not in other.given
    assert foreign not in owner.given
    for tool in ("gateway_view", "gateway_read"):
        assert "image/png, 1x1" in await called(hers, tool, handle=handle)
        assert "there is no content with the handle" in await called(his, tool, handle=handle)
    assert (await hers.read_resource(f"content://{handle}")).contents
    with pytest.raises(MCPError, match="there is no content with the handle"):
        await his.read_resource(f"content://{handle}")
    link = found(r"https://[^\s\]]+", words)
    async with owner.cloud.http() as http:
        assert (await http.get(link)).headers["content-type"] == "image/png"
        assert (await http.get(link.replace(handle, foreign))).status_code == 403


async def check_tasks(owner: Person, other: Person) -> None:
    task = (await owner.post("tools/call", {"name": "errands__chart", "arguments": {"later": True}})).json()["result"]
    assert task["resultType"] == "task"
    for method in ("tasks/get", "tasks/cancel"):
        refused = await other.post(method, {"taskId": task["taskId"]})
        assert "this caller has no task" in refused.json()["error"]["message"]
    done = await owner.post("tasks/get", {"taskId": task["taskId"]})
    assert done.json()["result"]["status"] == "completed"


async def check_sessions(owner: Person, other: Person) -> None:
    [session] = owner.sessions
    assert session not in other.sessions
    headers = {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    assert (await other.post("ping", {}, **headers)).status_code == 404
    async with other.cloud.http(headers={**headers, "Authorization": f"Bearer {other.token}"}) as http:
        for method in ("GET", "DELETE"):
            answer = await http.request(method, other.cloud.endpoint, headers={"Accept": "text/event-stream"})
            assert answer.status_code == 404
    assert (await owner.post("ping", {}, **headers)).status_code == 200


async def check_revocation(cloud: Cloud, revoked: Person) -> None:
    assert (await revoked.post("tools/list", {})).status_code == 200
    with anyio.fail_after(A_MINUTE):
        await anyio.to_thread.run_sync(cloud.run, "access", "revoke", "--person", revoked.name)
        while (await revoked.post("tools/list", {})).status_code != 401:  # noqa: ASYNC110
            await anyio.sleep(0.2)
    assert revoked.memory.client is not None
    form = {
        "grant_type": "refresh_token",
        "refresh_token": revoked.tokens[1],
        "client_id": revoked.memory.client.client_id,
        "client_secret": revoked.memory.client.client_secret or "",
    }
    async with cloud.http() as http:
        renewed = await http.post(f"{cloud.edge.url}/token", data=form)
    assert renewed.json()["error"] == "invalid_grant"


def check_upstreams(cloud: Cloud) -> None:
    """Each upstream was called with its own tokens alone, one for each person, and with none of a host."""
    of_all: list[str] = []
    for upstream in cloud.upstreams.values():
        by_token = {(sent.removeprefix("Bearer "), account) for _, account, sent in upstream.seen() if sent is not None}
        assert {account for _, account in by_token} == set(ACCOUNTS.values())
        of_all += [token for token, _ in by_token]
        assert None not in [account for method, account, _ in upstream.seen() if method == "tools/call"]
    assert len(set(of_all)) == len(of_all) == len(UPSTREAMS) * len(PASSPHRASES)


def check_audit(cloud: Cloud) -> None:
    """Each line has the person whose it is: what it says was shown is what they, and nobody else, were told."""
    lines = cloud.audit
    for name, account in ACCOUNTS.items():
        answer = hashlib.sha256(f"you are {account}".encode()).hexdigest()
        own = [line for line in lines if line.get("principal") == name]
        whoami = [line for line in own if line.get("tool") == "whoami"]
        assert {line["upstream"] for line in whoami} == set(UPSTREAMS)
        assert {part["sha256"] for line in whoami for part in line["shown"]} == {answer}
        logins = [(line["upstream"], line["outcome"]) for line in own if line["event"] == "login"]
        assert logins == [(upstream, "ok") for upstream in UPSTREAMS]
    others = {line["event"] for line in lines if line.get("principal") not in ACCOUNTS}
    assert others == {"start", "token refused"}


def check_secrets(cloud: Cloud, people: Sequence[Person], shown: Sequence[str]) -> None:
    """No token is in what the gateway has written or shows, nor one of an upstream in what it has answered."""
    of_upstreams = [f"{kind}-{account}-" for kind in ("access", "refresh") for account in ACCOUNTS.values()]
    of_hosts = [token for person in people for token in person.tokens]
    folders = (cloud.folder, Path(os.environ["XDG_RUNTIME_DIR"]))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert {"audit.jsonl", "logins.json", "mcp-gateway.toml"} <= {path.name for path in files}
    written = [*(path.read_bytes() for path in files), "".join(cloud.said).encode(), *(one.encode() for one in shown)]
    tickets = [link.rpartition("/")[2] for person in people for link in person.links]
    for secret in (*of_upstreams, *of_hosts, *PASSPHRASES.values(), *tickets):
        assert not any(secret.encode() in one for one in written), secret
    for secret in of_upstreams:
        assert not any(secret.encode() in answer for answer in cloud.edge.answers.values())


async def test_two_people_call_upstreams_with_logins_of_their_own(
    chromium: str, node_modules: Path, tmp_path: Path
) -> None:
    """Both approve a host, log in to both upstreams, and call; then Bob's host is revoked."""
    with in_the_cloud(tmp_path) as cloud, browsers(cloud, chromium) as (approve, callback, seen):
        alice, bob = (Person(name, cloud, approve, callback) for name in PASSPHRASES)
        with anyio.fail_after(2 * PATIENCE):
            async with alice.connected(opens_links=True) as hers:
                async with bob.connected(opens_links=False) as his:
                    await log_in_by_elicitation(alice, hers)
                    await log_in_by_links(bob, his)
                    for person, client in ((alice, hers), (bob, his), (alice, hers)):
                        await check_accounts(person, client)
                    await check_handles(alice, hers, bob, his)
                    await check_tasks(alice, bob)
                    await check_sessions(alice, bob)
                await check_revocation(cloud, bob)
                await check_accounts(alice, hers)
        words = [("status",), ("status", "--json"), ("access", "ls", "--json"), ("audit", "show"), ("audit", "verify")]
        shown = [cloud.run(*each) for each in words]
        assert "whole" in shown[-1]
        assert all(f", for {name}: " in shown[0] for name in PASSPHRASES)
        assert "bob" not in cloud.run("audit", "show", "--principal", "alice")
        check_upstreams(cloud)
    assert {"/register", "/token", "/.well-known/oauth-authorization-server"} <= cloud.edge.paths
    for name, page in zip(PASSPHRASES, seen, strict=True):
        assert f"Let Host of {name} use your tools?" in page["approval"]
        assert page["violations"] == []
    assert bob.account not in alice.given
    assert alice.account not in bob.given
    check_audit(cloud)
    check_secrets(cloud, (alice, bob), shown)

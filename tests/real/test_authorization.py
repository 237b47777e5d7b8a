"""Hosts that can send no header: they register, a person approves them, and they call, through a gateway of its own."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import ROOT
from tests.real.conftest import COMMAND, PATIENCE, environment
from tests.real.oauth_hosts import Memory, host_of
from tests.serving.authorization.sites import Reply, site

pytestmark = pytest.mark.anyio

PASSPHRASE = "correct horse battery"
CALLBACK = "http://127.0.0.1:41999/callback"
PICTURES = ROOT / "tests" / "servers" / "pictures_stdio.py"


@dataclass(frozen=True)
class Running:
    address: str
    run: Callable[..., subprocess.CompletedProcess[str]]
    """A command of the gateway's, with its configuration."""
    trail: Path

    def approvals(self) -> set[tuple[str, str]]:
        """Whose approvals are in the audit trail, and what became of them."""
        *lines, _ = self.trail.read_text("utf-8").split("\n")  # the last one may not be whole yet
        records = [json.loads(line) for line in lines]
        return {(one["principal"], one["outcome"]) for one in records if one["event"] == "host approval"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """A gateway with two people: Alice reaches both upstreams, and Bob one of them."""
    folder = tmp_path_factory.mktemp("authorization")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "mcp-gateway.toml"
    upstream = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(PICTURES))}]"
    config.write_text(
        f"[http]\nport = {port}\n[upstreams.first]\n{upstream}\n[upstreams.second]\n{upstream}\n", "utf-8"
    )
    env = environment(MCP_GATEWAY_STATE=str(folder / "state"))

    def run(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gateway", *words, "--config", str(config)]
        return subprocess.run(
            command, input=stdin, env=env, capture_output=True, text=True, check=True, timeout=PATIENCE
        )

    run("person", "add", "alice", stdin=f"{PASSPHRASE}\n")
    run("person", "add", "bob", "--upstream", "second", stdin=f"{PASSPHRASE}\n")
    with config.open("a", encoding="utf-8") as file:
        file.write('\n[access.authorization_server]\n[audit]\npath = "audit.jsonl"\n')
    serve = [*COMMAND, "--config", str(config), "--http"]
    with subprocess.Popen(serve, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[str] = []
        try:
            for line in process.stderr:
                said.append(line)
                if line.startswith("listening on "):
                    break
            rest = threading.Thread(target=lambda stderr=process.stderr: said.extend(stderr), daemon=True)
            rest.start()
            yield Running(f"http://127.0.0.1:{port}", run, folder / "audit.jsonl")
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, "".join(said)
            rest.join(PATIENCE)
        finally:
            process.kill()
    assert PASSPHRASE not in "".join(said)
    assert "mcpa_" not in "".join(said)


def approved(address: str, name: str) -> str:
    """Do what a browser does on the approval page, and give the address of the host that it is sent to."""
    with httpx2.Client(trust_env=False) as browser:
        page = browser.get(address)
        for fields in ({"action": "login", "name": name, "passphrase": PASSPHRASE}, {"action": "approve"}):
            [csrf] = set(re.findall(r'name="csrf" value="([^"]*)"', page.text))
            answer = browser.post(page.url, data={**fields, "csrf": csrf})
            assert answer.status_code == 303, answer.text
            location = answer.headers["location"]
            if fields["action"] == "login":
                page = browser.get(page.url.join(location))
    return location


async def tools_of(person: str, address: str, memory: Memory) -> set[str]:
    auth = host_of(person, address, memory, approved, CALLBACK)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=PATIENCE, trust_env=False) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        return {tool.name for tool in (await client.list_tools()).tools}


async def test_two_people_approve_and_each_host_reaches_what_its_person_does(running: Running) -> None:
    address = f"{running.address}/mcp"
    alice, bob = Memory(), Memory()
    with anyio.fail_after(PATIENCE):
        await tools_of("alice", address, alice)
        while not {"first__echo", "second__echo"} <= await tools_of("alice", address, alice):  # noqa: ASYNC110
            await anyio.sleep(0.2)  # the upstreams are still starting
        theirs = await tools_of("bob", address, bob)
        while not {("alice", "approved"), ("bob", "approved")} <= running.approvals():  # noqa: ASYNC110
            await anyio.sleep(0.1)  # the audit trail is written by a thread
    assert "second__echo" in theirs
    assert not any(name.startswith("first") for name in theirs)
    assert alice.client is not None
    assert bob.client is not None
    assert alice.client.client_id != bob.client.client_id
    listed = json.loads(running.run("access", "ls", "--json").stdout)
    assert {(one["principal"], one["client_name"]) for one in listed} == {
        ("alice", "Host of alice"),
        ("bob", "Host of bob"),
    }


async def test_a_host_renews_its_token_by_itself_and_revoking_ends_it(running: Running) -> None:
    address = f"{running.address}/mcp"
    memory = Memory()
    with anyio.fail_after(PATIENCE):
        await tools_of("bob", address, memory)
        assert memory.tokens is not None
        first = memory.tokens
        memory.tokens = first.model_copy(update={"access_token": "mcpa_forgotten", "expires_in": 0})
        await tools_of("bob", address, memory)
        assert memory.tokens.access_token != "mcpa_forgotten"
        headers = {"Authorization": f"Bearer {memory.tokens.access_token}"}
        async with httpx2.AsyncClient(trust_env=False) as http:
            assert (await http.get(address, headers=headers)).status_code != 401
            await anyio.to_thread.run_sync(lambda: running.run("access", "revoke", "--person", "bob"))
            while (await http.get(address, headers=headers)).status_code != 401:  # noqa: ASYNC110
                await anyio.sleep(0.5)
    listed = json.loads(running.run("access", "ls", "--json").stdout)
    assert "bob" not in {one["principal"] for one in listed}


def register(address: str, redirect_uri: str) -> str:
    metadata = {"redirect_uris": [redirect_uri], "client_name": "A Host", "token_endpoint_auth_method": "none"}
    return httpx2.post(f"{address}/register", json=metadata, trust_env=False).json()["client_id"]


def test_the_conformance_suite_finds_an_authorization_server(running: Running, node_modules: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    client_id = register(running.address, f"http://127.0.0.1:{port}/callback")
    suite = str(node_modules / ".bin" / "conformance")
    options = ["--url", running.address, "--client-id", client_id, "--port", port]
    command = [suite, "authorization", *options, "--resource", f"{running.address}/mcp"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said: list[str] = []
        try:
            for line in process.stdout:
                said.append(line)
                if line.startswith(f"{running.address}/authorize?"):
                    assert httpx2.get(approved(line.strip(), "alice"), trust_env=False).status_code == 200
            code = process.wait(PATIENCE)
        finally:
            process.kill()
    words = "".join(said)
    assert code == 0, words
    assert "FAILURE" not in words
    assert "WARNING" not in words
    assert "SKIPPED" not in words


def test_a_person_approves_in_a_real_browser(
    running: Running, chromium: str, node_modules: Path, tmp_path: Path
) -> None:
    arrived: Queue[str] = Queue()

    def answer(path: str, *_: Any) -> Reply:
        """A host, whose page sends the browser on once more, to another address of its own."""
        if path.startswith("/callback"):
            arrived.put(path)
            return Reply(303, {"Location": f"http://localhost:{port}/done"})
        return Reply(body=b"done")

    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    with site(answer) as address:
        port = address.rpartition(":")[2]
        redirect_uri = f"http://{address}/callback"
        query = urlencode(
            {
                "response_type": "code",
                "client_id": register(running.address, redirect_uri),
                "redirect_uri": redirect_uri,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
                "state": "a state",
            }
        )
        page = f"{running.address}/authorize?{query}"
        screenshots = Path(os.environ.get("SCREENSHOTS", tmp_path))
        script = str(ROOT / "tests" / "real" / "apps" / "approve.mjs")
        command = ["node", script, chromium, page, "bob", PASSPHRASE, str(screenshots)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert "A Host wants to use your tools" in seen["login"]
    assert "second: all tools" in seen["approval"]
    assert "first" not in seen["approval"]
    assert seen["isWide"] is False
    assert seen["violations"] == []
    assert seen["ended"] == f"http://localhost:{port}/done"
    given = dict(parse_qsl(urlsplit(arrived.get(timeout=PATIENCE)).query))
    assert given["state"] == "a state"
    assert given["iss"] == running.address
    form = {
        "grant_type": "authorization_code",
        "client_id": dict(parse_qsl(query))["client_id"],
        "code": given["code"],
        "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        "redirect_uri": redirect_uri,
    }
    tokens = httpx2.post(f"{running.address}/token", data=form, trust_env=False)
    assert tokens.status_code == 200, tokens.text

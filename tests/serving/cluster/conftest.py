"""Gateways as processes that serve together, and hosts of both eras before them."""

import json
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.servers.redis_server import RedisServer
from tests.telemetry.conftest import Serving

SERVERS = Path(__file__).parents[2] / "servers"
ALICE, BOB = "alice-token-0123456789", "bob-token-0123456789"
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LOST_AFTER = 2.0


class Replicas:
    """Starts replicas with one configuration; none outlives the test."""

    def __init__(self, folder: Path, redis: RedisServer) -> None:
        self.folder = folder
        self.redis = redis
        self.more = ""
        self.running: list[Serving] = []

    def start(self, *options: str, clustered: bool = True) -> Serving:
        folder = self.folder / f"replica{len(self.running)}"
        folder.mkdir()
        config = folder / "mcp-gateway.toml"
        config.write_text(
            f"""
{f'[cluster]{chr(10)}url = "{self.redis.url}"{chr(10)}lost_after = {LOST_AFTER}' if clustered else ""}
[access.tokens.alice]
token = "{ALICE}"
[access.tokens.bob]
token = "{BOB}"
[upstreams.own]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(SERVERS / "stateful_stdio.py"))}, "own"]
[upstreams.all]
command = {json.dumps(sys.executable)}
args = [{json.dumps(str(SERVERS / "stateful_stdio.py"))}, "all"]
session = "shared"
{self.more}
""",
            "utf-8",
        )
        serving = Serving(config, *options, MCP_GATEWAY_STATE=str(folder / "state"))
        self.running.append(serving)
        return serving

    def settle(self) -> None:
        """Wait until what the others need has been written, which happens in the background."""
        time.sleep(0.5)

    def end(self) -> None:
        for serving in self.running:
            if serving.process.poll() is None:
                serving.process.kill()
            serving.process.wait()
            print(*serving.lines, sep="\n")


class Host:
    """A host of the handshake era. Each request goes where the test says, as a load balancer might send it."""

    def __init__(self, token: str = ALICE, revision: str = "2025-11-25") -> None:
        self.http = httpx2.Client(trust_env=False, timeout=60)
        self.revision = revision
        self.client = "h"
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        self.requests = 0

    def open(self, at: Serving) -> str:
        """Open a session and return its id."""
        about = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}
        answer = self.http.post(f"{at.url}/mcp", json=self.message("initialize", about), headers=self.headers)
        assert answer.status_code == 200, answer.text
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": self.revision}
        self.post(at, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer.headers["mcp-session-id"]

    def message(self, method: str, params: Any) -> dict[str, Any]:
        self.requests += 1
        return {"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params}

    def post(self, at: Serving, message: Any) -> httpx2.Response:
        return self.http.post(f"{at.url}/mcp", json=message, headers=self.headers)

    def ask(self, at: Serving, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        answer = self.post(at, self.message(method, params))
        assert answer.status_code == 200, answer.text
        return last_message(answer.text)

    def call(self, at: Serving, tool: str, /, **arguments: Any) -> str:
        """Return the text of a tool's result."""
        answer = self.ask(at, "tools/call", name=tool, arguments=arguments)
        return answer["result"]["content"][0]["text"]

    def now(self, at: Serving, tool: str, /, **arguments: Any) -> str:
        """Return the text of a tool's result, as a host of 2026-07-28 that has no session."""
        answer = self.stateless(at, "tools/call", tool, {"name": tool, "arguments": arguments})
        return answer["result"]["content"][0]["text"]

    def ask_tools(self, at: Serving) -> list[str]:
        """Return the names of the tools that a host of 2026-07-28 is offered, with both upstreams ready."""
        tools = self.stateless(at, "tools/list", "", {})["result"]["tools"]
        return [tool["name"] for tool in tools]

    def stateless(
        self,
        at: Serving,
        method: str,
        name: str,
        params: dict[str, Any],
        capabilities: Any = None,
        revision: str = MODERN,
    ) -> dict[str, Any]:
        """Return the answer to a request of 2026-07-28, or of a later revision."""
        client = {"name": self.client, "version": "1"}
        about = {"protocolVersion": revision, "clientCapabilities": capabilities or {}, "clientInfo": client}
        meta = {f"{META}{key}": value for key, value in about.items()}
        headers = {"MCP-Protocol-Version": revision, "Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
        message = self.message(method, {**params, "_meta": meta})
        answer = self.http.post(f"{at.url}/mcp", json=message, headers=self.headers | headers)
        assert answer.status_code in (200, 400), answer.text
        return last_message(answer.text)

    @contextmanager
    def stream(self, at: Serving, message: Any = None, **headers: str) -> Iterator["Events"]:
        """Send a message, or open a stream without one, and read the events as they come."""
        method = "GET" if message is None else "POST"
        with self.http.stream(method, f"{at.url}/mcp", json=message, headers=self.headers | headers) as response:
            assert response.status_code in (200, 502, 503), response.read()
            yield Events(response)


class Events:
    """The events of a stream; `id` is that of the last one."""

    def __init__(self, response: httpx2.Response) -> None:
        self._lines = response.iter_lines()
        self.id = ""

    def __iter__(self) -> Iterator[dict[str, Any] | None]:
        for line in self._lines:
            if line.startswith("id: "):
                self.id = line.removeprefix("id: ")
            elif line.startswith("data:"):
                text = line.removeprefix("data:").strip()
                yield json.loads(text) if text else None
            elif line.startswith("{"):  # an answer that is no stream
                yield json.loads(line)


def last_message(text: str) -> dict[str, Any]:
    """Return the last message in the body of an answer, of events or JSON."""
    found = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return json.loads(found[-1] if found else text)


@pytest.fixture
def replicas(tmp_path: Path, redis: RedisServer) -> Generator[Replicas]:
    started = Replicas(tmp_path, redis)
    yield started
    started.end()


@pytest.fixture
def host() -> Generator[Callable[..., Host]]:
    """Makes hosts; their connections are closed at the end."""
    made: list[Host] = []

    def make(token: str = ALICE, revision: str = "2025-11-25") -> Host:
        made.append(Host(token, revision))
        return made[-1]

    yield make
    for one in made:
        one.http.close()

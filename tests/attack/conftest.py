"""A gateway under attack, and a bystander: an ordinary host that goes on calling an ordinary upstream meanwhile.

Each attack prints a line: how long the bystander waited for its answers, and what the gateway's memory did. Where no
bystander can be (a gateway on stdio has one host; one that is short of memory serves nobody), it says so, and what
there is. All of it stays on the loopback and is bounded. `make attack` runs these tests alone and shows the lines.
"""

import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
REVISION = "2025-11-25"
PATIENCE_SECONDS = 60.0
"""How long one request of a test may take before the test fails."""

BYSTANDER = """
import json, sys

def answer(method, params):
    if method == "initialize":
        server = {"name": "bystander", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    if method == "tools/list":
        return {"tools": [{"name": "ping", "description": "ping", "inputSchema": {"type": "object"}}]}
    return {"content": [{"type": "text", "text": "pong"}]}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


class Client:
    """A host over Streamable HTTP that speaks raw JSON-RPC: of the handshake era, or (`modern`) stateless."""

    def __init__(
        self,
        port: int,
        name: str = "somebody",
        *,
        path: str = "/mcp",
        modern: bool = False,
        headers: Mapping[str, str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.name, self.path, self.modern = name, path, modern
        self.capabilities = dict(capabilities or {})
        self.session: str | None = None
        self.retry_after: str | None = None
        """What the last answer to `send` said of when to try again."""
        self._headers = dict(headers or {})
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience)
        self._count = 0
        if not modern:
            info = {"name": name, "version": "1"}
            opening = {"protocolVersion": REVISION, "capabilities": self.capabilities, "clientInfo": info}
            self.opened = self.ask("initialize", opening)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request; the whole JSON-RPC answer. A body that is not JSON is given as `{"http": status, ...}`."""
        self._count += 1
        sent = self._params(params)
        status, text = self.send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": sent})
        events = [line[5:].strip() for line in text.splitlines() if line.startswith("data:") and "{" in line]
        try:
            return json.loads(events[-1] if events else text)
        except ValueError:
            return {"http": status, "text": text}

    def send(self, message: Any) -> tuple[int, str]:
        """Post one message; the status and the body."""
        self._connection.request("POST", self.path, json.dumps(message), self._request_headers(message))
        response = self._connection.getresponse()
        self.retry_after = response.getheader("retry-after")
        self.session = response.getheader("mcp-session-id") or self.session
        return response.status, response.read().decode("utf-8", "replace")

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool; the result, or the JSON-RPC error."""
        answer = self.ask("tools/call", {"name": tool, "arguments": dict(arguments or {})})
        return answer.get("result") or answer.get("error") or answer

    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools that are offered, by name."""
        return {tool["name"]: tool for tool in self.ask("tools/list")["result"]["tools"]}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """While this is open, so is a stream of events of the host's session (handshake era)."""
        stream = http.client.HTTPConnection("127.0.0.1", self._connection.port, timeout=PATIENCE_SECONDS)
        headers = {"accept": "text/event-stream", "mcp-protocol-version": REVISION, **self._headers}
        stream.request("GET", self.path, headers=headers | {"mcp-session-id": self.session or ""})
        response = stream.getresponse()
        assert response.status == 200
        try:
            yield
        finally:
            response.close()
            stream.close()

    def leave(self) -> None:
        """End the session, as the protocol wants it (handshake era)."""
        self._connection.request("DELETE", self.path, headers=self._request_headers({"method": None}))
        assert self._connection.getresponse().read() is not None

    def close(self) -> None:
        """Be gone, without goodbye."""
        self._connection.close()

    def _params(self, params: Mapping[str, Any] | None) -> dict[str, Any]:
        if not self.modern:
            return dict(params or {})
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": self.name, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        }
        return {**(params or {}), "_meta": {**meta, **((params or {}).get("_meta") or {})}}

    def _request_headers(self, message: Any) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **self._headers}
        if self.modern:
            headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
            if isinstance(named := (message["params"].get("name") or message["params"].get("uri")), str):
                headers["mcp-name"] = named
        elif self.session is not None:
            headers |= {"mcp-session-id": self.session, "mcp-protocol-version": REVISION}
        return headers


@dataclass
class Watch:
    """What the bystander and the gateway's memory went through while an attack ran. Seconds and bytes."""

    waits: list[float] = field(default_factory=list[float])
    failures: list[str] = field(default_factory=list[str])
    rss_before: int = 0
    rss_most: int = 0

    @property
    def longest(self) -> float:
        """The longest wait of the bystander for an answer, in seconds; infinite when it got none."""
        return max(self.waits, default=float("inf"))

    @property
    def growth(self) -> int:
        """By how many bytes the gateway's memory was more than before, at the most."""
        return self.rss_most - self.rss_before

    def __str__(self) -> str:
        middle = statistics.median(self.waits) if self.waits else float("inf")
        return (
            f"others waited {self.longest:.2f} s at most (median {middle:.3f} s, {len(self.waits)} calls, "
            f"{len(self.failures)} failed); memory {self.growth / 2**20:+.0f} MB"
        )


def rss_of(process: "subprocess.Popen[Any]") -> int:
    """Bytes of memory of a process, without those that it has started."""
    status = Path("/proc", str(process.pid), "status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1]) * 1024


@dataclass
class Memory:
    """What the memory of a process was, and has been at the most. Bytes."""

    before: int
    most: int

    @property
    def growth(self) -> int:
        """By how many bytes it was more than before, at the most."""
        return self.most - self.before

    def __str__(self) -> str:
        return f"memory {self.growth / 2**20:+.0f} MB"


@contextmanager
def weighed(process: "subprocess.Popen[Any]", interval: float = 0.05) -> Iterator[Memory]:
    """While this is open, a process's memory is looked at: for attacks in which no bystander can be served."""
    memory = Memory(rss_of(process), rss_of(process))
    done = threading.Event()

    def look() -> None:
        memory.most = max(memory.most, rss_of(process) if process.poll() is None else 0)

    def go_on() -> None:
        while not done.wait(interval):
            look()

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        done.set()
        thread.join(PATIENCE_SECONDS)
        look()


class Attacked:
    """A running gateway over HTTP. Its upstream `bystander` offers `bystander__ping`."""

    def __init__(
        self, process: "subprocess.Popen[str]", port: int, said: list[str], name: str, token: str | None = None
    ) -> None:
        self.process = process
        self.headers = {"authorization": f"Bearer {token}"} if token else {}
        """With these its hosts ask, unless they are made with others."""
        self.port = port
        self.said = said
        """The lines that the gateway has written to stderr so far."""
        self._name = name

    def rss(self) -> int:
        """Bytes of memory of the gateway's own process."""
        return rss_of(self.process)

    def client(self, name: str = "somebody", **options: Any) -> Client:
        """A host; see `Client`."""
        return Client(self.port, name, **{"headers": self.headers, **options})

    @contextmanager
    def watched(self, what: str = "", *, interval: float = 0.05) -> Iterator[Watch]:
        """While this is open, the bystander calls again and again. Prints what came of it."""
        watch = Watch(rss_before=self.rss(), rss_most=self.rss())
        done = threading.Event()
        bystander = self.client("bystander")
        assert _pong(bystander.call("bystander__ping"))

        def go_on() -> None:
            last = False
            while not watch.failures:
                began = time.monotonic()
                try:
                    answer = bystander.call("bystander__ping")
                    if not _pong(answer):
                        watch.failures.append(json.dumps(answer)[:300])
                except (OSError, http.client.HTTPException, ValueError) as error:
                    watch.failures.append(repr(error))
                watch.waits.append(time.monotonic() - began)
                watch.rss_most = max(watch.rss_most, self.rss() if self.process.poll() is None else 0)
                if last:
                    return
                last = done.wait(interval)

        thread = threading.Thread(target=go_on, daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            done.set()
            thread.join(PATIENCE_SECONDS)
            bystander.close()
            if self.process.poll() is None:
                watch.rss_most = max(watch.rss_most, self.rss())
            print(f"attack {self._name}{f' ({what})' if what else ''}: {watch}")
        assert not thread.is_alive(), "the bystander still waits for an answer"


def _pong(result: Mapping[str, Any]) -> bool:
    return bool(result.get("content")) and result["content"][0].get("text") == "pong"


Start = Callable[..., Attacked]


@pytest.fixture
def attacked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts a gateway: `attacked(upstreams, config="...", path=...)`.

    `upstreams`: the source of a stdio server by name (Python, standard library), or its whole command line as a list;
    `config`: more lines of mcp-gateway.toml, before the upstreams; `environ`: more variables. It is ended after the
    test, within ten seconds, or the test fails.
    """
    running: list[tuple[subprocess.Popen[str], threading.Thread]] = []

    def start(
        upstreams: Mapping[str, str | Sequence[str]] | None = None,
        config: str = "",
        environ: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
        token: str | None = None,
        open_files: int | None = None,
    ) -> Attacked:
        """`more`: further lines of an upstream's table, by its name; `token`: what hosts have to show;
        `open_files`: how many the gateway may have."""
        lines = [config]
        for name, server in {"bystander": BYSTANDER, **(upstreams or {})}.items():
            if isinstance(server, str):
                (tmp_path / f"{name}.py").write_text(server, "utf-8")
                server = [sys.executable, str(tmp_path / f"{name}.py")]
            lines += [f"[upstreams.{name}]", f"command = {json.dumps(server[0])}", f"args = {json.dumps(server[1:])}"]
            lines += [(more or {}).get(name, "")]
        path = tmp_path / "mcp-gateway.toml"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        command = [sys.executable, "-m", "gateway", "serve", "--http", "--port", "0", "--config", str(path)]
        if open_files is not None:
            command = ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh", *command]
        env = {**os.environ, "MCP_GATEWAY_CACHE": "", "PYTHONPATH": str(ROOT), **(environ or {})}
        if token is not None:
            env["MCP_GATEWAY_TOKEN"] = token
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env, cwd=tmp_path
        )
        said: list[str] = []
        assert process.stderr is not None
        found: re.Match[str] | None = None
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line):
                break
        reader = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
        reader.start()
        running.append((process, reader))
        assert found is not None, f"the gateway did not start: {''.join(said)}"
        name = request.node.name.removeprefix("test_").replace("_", " ")
        return Attacked(process, int(found[1]), said, name, token)

    yield start
    obeyed = True
    for process, reader in running:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            obeyed = False
            process.kill()
            process.wait()
        reader.join(10)
        assert process.stderr is not None
        process.stderr.close()
    assert obeyed, "the gateway did not obey SIGTERM within ten seconds"

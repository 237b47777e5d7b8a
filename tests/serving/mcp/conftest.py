"""What the tests of the downstream side share: the sample service, and hosts that speak raw JSON-RPC."""

import asyncio
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import StdioServerParameters

from gateway.config.http_settings import HttpSettings
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from tests.servers.downstream_service import SampleService

SERVERS = Path(__file__).parents[2] / "servers"
VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"


class Wire:
    """Messages as hosts write them."""

    @staticmethod
    def request(request_id: Any, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        return message if params is None else {**message, "params": params}

    @staticmethod
    def notification(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        return message if params is None else {**message, "params": params}

    @staticmethod
    def modern(params: dict[str, Any] | None = None, *, version: str = "2026-07-28", **meta: Any) -> dict[str, Any]:
        """Params with the envelope of 2026-07-28."""
        envelope = {VERSION: version, CAPABILITIES: {"roots": {}}, CLIENT_INFO: {"name": "Tester", "version": "9"}}
        return {**(params or {}), "_meta": {**envelope, **meta}}

    @staticmethod
    def initialize(revision: str = "2025-06-18", request_id: Any = 0) -> dict[str, Any]:
        params = {
            "protocolVersion": revision,
            "capabilities": {"roots": {"listChanged": True}},
            "clientInfo": {"name": "Tester", "version": "9"},
        }
        return Wire.request(request_id, "initialize", params)


@pytest.fixture
def wire() -> type[Wire]:
    return Wire


class StdioHost:
    """A host that has started a server as a child, and talks to it line by line."""

    def __init__(self, *arguments: str, pass_fds: tuple[int, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SERVERS / "downstream_stdio.py"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
            env={**os.environ, "PYTHONPATH": str(SERVERS.parents[1])},
        )
        self._rest = b""

    def send(self, *messages: Any) -> None:
        lines = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def receive(self, seconds: float = 30) -> dict[str, Any]:
        """The next message. Fails when none comes, or when a line is no message."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        parts = [self._rest]
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in parts[-1]:
                assert selector.select(max(0, deadline - time.monotonic())), "no message came"
                part = os.read(self.process.stdout.fileno(), 1 << 20)
                assert part, "the server has ended"
                parts.append(part)
        line, self._rest = b"".join(parts).split(b"\n", 1)
        return json.loads(line)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request and give the answer to it; everything else that comes first is dropped."""
        self.send(message)
        while (answer := self.receive()).get("id") != message["id"]:
            pass
        return answer

    def leave(self) -> None:
        """Close our end."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def ended(self, seconds: float = 60) -> tuple[int, bytes, str]:
        """Wait for the end: exit code, what was left on stdout, and stderr."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        code = self.process.wait(seconds)
        return code, self._rest + self.process.stdout.read(), self.process.stderr.read().decode()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


@pytest.fixture
def stdio_command() -> StdioServerParameters:
    """How a client starts the server of `tests/servers/downstream_stdio.py`."""
    return StdioServerParameters(
        command=sys.executable,
        args=[str(SERVERS / "downstream_stdio.py")],
        env={"PYTHONPATH": str(SERVERS.parents[1])},
    )


@pytest.fixture
def stdio_host() -> Generator[Callable[..., StdioHost]]:
    """Starts servers on stdio, with arguments for `tests/servers/downstream_stdio.py`; ends them all."""
    hosts: list[StdioHost] = []

    def start(*arguments: str, **options: Any) -> StdioHost:
        hosts.append(StdioHost(*arguments, **options))
        return hosts[-1]

    yield start
    for host in hosts:
        host.close()


class Served:
    """The sample service behind a real port of this process."""

    def __init__(self, service: Any, port: int) -> None:
        self.service = service
        self.port = port
        self.url = f"http://127.0.0.1:{port}"


@asynccontextmanager
async def serve(service: Any, **settings: Any) -> AsyncGenerator[Served]:
    options = HttpSettings(port=0, **settings)
    identity = Identity("sample", "1.0", "Sample", "Be kind.")
    app = http_app(service, options, identity, profile_names=lambda: ("claude-code", "codex"))
    async with anyio.create_task_group() as tasks:
        bound = asyncio.Queue[int]()
        tasks.start_soon(partial(serve_http, app, options, on_bound=bound.put_nowait))
        yield Served(service, await bound.get())
        tasks.cancel_scope.cancel()


@pytest.fixture
def served() -> Callable[..., AbstractAsyncContextManager[Served]]:
    """Serves a fresh sample service over HTTP; takes fields of `HttpSettings`."""
    return lambda **settings: serve(SampleService(), **settings)

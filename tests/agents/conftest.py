"""Gateways with real upstreams, in process and over HTTP, for the toolset; completions of every API."""

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

import gateway
from gateway.agents import OpenGateway
from gateway.config.schema import Settings
from gateway.runtime import run_gateway
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http

SERVER = Path(__file__).parents[1] / "servers" / "agent_stdio.py"
TOKEN = "a token that nobody guesses"
Gateways = Callable[..., AbstractAsyncContextManager[OpenGateway]]


def settings_with(*upstreams: str, **more: Any) -> Settings:
    """Settings with the test's server as each of these upstreams."""
    server = {"command": sys.executable, "args": [str(SERVER)]}
    document = {"upstreams": dict.fromkeys(upstreams or ("one",), server), "http": {"port": 0, "token": TOKEN}}
    return Settings.model_validate({**document, **more})


@asynccontextmanager
async def served(settings: Settings) -> AsyncGenerator[str]:
    """The url of a gateway over HTTP, on a free port."""
    ports: list[int] = []
    bound = anyio.Event()

    def on_bound(port: int) -> None:
        ports.append(port)
        bound.set()

    async with run_gateway(settings) as running:
        app = http_app(running.router, settings.http, Identity("g", "1"), profile_names=running.router.profile_names)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve_http, app, settings.http, on_bound=on_bound))
            await bound.wait()
            yield f"http://127.0.0.1:{ports[0]}"
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def over_http(settings: Settings) -> AsyncGenerator[OpenGateway]:
    async with served(settings) as url, gateway.connect(url, token=TOKEN) as connected:
        yield connected


@pytest.fixture(params=["in process", "over HTTP"])
def opened(request: pytest.FixtureRequest) -> Gateways:
    """A gateway in front of the test's server, each way there is: `opened("one", "two", **settings)`."""
    way = gateway.open if request.param == "in process" else over_http
    return lambda *upstreams, **more: way(settings_with(*upstreams, **more))


@pytest.fixture
def in_process() -> Gateways:
    return lambda *upstreams, **more: gateway.open(settings_with(*upstreams, **more))


@pytest.fixture
def serve() -> Callable[..., AbstractAsyncContextManager[str]]:
    return lambda *upstreams, **more: served(settings_with(*upstreams, **more))


def chat(*calls: tuple[str, Any], text: str | None = None) -> dict[str, Any]:
    """A chat completion with calls of name and arguments (an object, or JSON text as it is)."""
    made = [
        {
            "id": f"call_{place}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for place, (name, given) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    return {"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@pytest.fixture(name="chat")
def chat_completion() -> Callable[..., dict[str, Any]]:
    return chat


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """A configuration with the test's server as the upstream `one`."""
    path = tmp_path / "mcp-gateway.toml"
    command, server = json.dumps(sys.executable), json.dumps(str(SERVER))
    path.write_text(f"[upstreams.one]\ncommand = {command}\nargs = [{server}]\n", "utf-8")
    return path

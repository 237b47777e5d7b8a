"""A model API that records what it gets, and the proxy before it, each on a real port of this process."""

import asyncio
import base64
import io
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest
from PIL import Image

from gateway.config.model_proxy_settings import HistorySettings, ModelProxySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.repair_request import Repairer
from gateway.content.store import MemoryStore
from gateway.errors import MediaError
from gateway.serving.http import Listening, serve
from gateway.serving.model_proxy import serve_model_proxy

Answer = Callable[[Any, Any], Awaitable[None]]


@dataclass
class Recorder:
    """An ASGI application: keeps each request, and answers as `answer` does (default: 200 and `{}`)."""

    answer: Answer | None = None
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        path, query = scope["raw_path"].decode(), scope["query_string"].decode()
        self.requests.append(
            {"method": scope["method"], "path": path, "query": query, "headers": headers, "body": body}
        )
        if self.answer is not None:
            await self.answer(receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": b"{}"})


class NoWorkers:
    """For media that fits as it is."""

    async def run(self, effect: Any) -> Any:
        raise MediaError("there are no workers here")


@dataclass
class Proxied:
    """A running proxy: its address, the address behind it, and its store."""

    url: str
    behind: str
    store: MemoryStore
    explained: list[Any] = field(default_factory=list[Any])


@asynccontextmanager
async def proxied(app: Any, *, path: str = "", to: str | None = None, **options: Any) -> AsyncGenerator[Proxied]:
    with anyio.fail_after(40):  # no test takes longer
        async with anyio.create_task_group() as tasks:
            port = await _bound(tasks, partial(serve, app, Listening("127.0.0.1", 0, "test")))
            behind = to or f"http://127.0.0.1:{port}{path}"
            settings = ModelProxySettings(to=behind, port=0, **options)
            store = MemoryStore(StoreSettings())
            running = Proxied("", behind, store)
            repairer = Repairer(store, NoWorkers(), HistorySettings())
            proxy = partial(serve_model_proxy, settings, repairer, explain=running.explained.append)
            running.url = f"http://127.0.0.1:{await _bound(tasks, proxy)}"
            yield running
            tasks.cancel_scope.cancel()


async def _bound(tasks: anyio.abc.TaskGroup, server: Callable[..., Coroutine[Any, Any, None]]) -> int:
    bound = asyncio.Queue[int]()
    tasks.start_soon(partial(server, on_bound=bound.put_nowait))
    return await bound.get()


@pytest.fixture
def recorder() -> type[Recorder]:
    return Recorder


@pytest.fixture
def before() -> Callable[..., AbstractAsyncContextManager[Proxied]]:
    """The proxy before an application: `before(app, path="/v1", token=...)`."""
    return proxied


@pytest.fixture(scope="session")
def picture() -> Callable[[str], str]:
    """A small PNG of a colour, as base64."""

    def make(colour: str) -> str:
        buffer = io.BytesIO()
        Image.new("RGB", (40, 30), colour).save(buffer, "PNG")
        return base64.b64encode(buffer.getvalue()).decode()

    return make

"""The providers' file endpoints on a real port of this process, and clients of each."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import pytest

from gateway.content.provider_files import ProviderFiles
from gateway.serving.http import Listening, serve
from tests.servers.provider_files import KEY, FileServer


@dataclass
class Running:
    """The server with its address, and the environment that leads the clients to it."""

    server: Any
    url: str
    environ: dict[str, str]

    def files(self, **more: Any) -> ProviderFiles:
        return ProviderFiles.from_environment(self.environ, **more)

    def uploads(self) -> int:
        """How many uploads were begun."""
        starts = ("/v1/files", "/upload/v1beta/files", "/storage/upload/initiate")
        return sum(method == "POST" and path in starts for method, path in self.server.requests)


@asynccontextmanager
async def running(*, key: str | None = None, **options: Any) -> AsyncGenerator[Running]:
    server = FileServer(**options)
    bound = asyncio.Queue[int]()
    with anyio.fail_after(40):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(serve, server.app, Listening("127.0.0.1", 0, "test"), on_bound=bound.put_nowait))
            url = f"http://127.0.0.1:{await bound.get()}"
            mine = key or KEY
            environ = {
                "OPENAI_API_KEY": mine,
                "OPENAI_BASE_URL": f"{url}/v1",
                "ANTHROPIC_API_KEY": mine,
                "ANTHROPIC_BASE_URL": url,
                "GEMINI_API_KEY": mine,
                "GOOGLE_GEMINI_BASE_URL": url,
                "FAL_KEY": mine,
                "FAL_STORAGE_URL": url,
            }
            yield Running(server, url, environ)
            tasks.cancel_scope.cancel()


@pytest.fixture
def providers() -> Callable[..., AbstractAsyncContextManager[Running]]:
    """The four providers: `async with providers() as running`."""
    return running

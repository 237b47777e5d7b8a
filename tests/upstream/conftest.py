"""Upstreams over real child processes and real loopback servers, started for one test and gone after it."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.upstream import Upstream, Upstreams, UpstreamState

SERVERS = Path(__file__).parents[1] / "servers"

Connect = Callable[..., AbstractAsyncContextManager[Upstream]]
Serve = Callable[..., AbstractAsyncContextManager[str]]


class Changes:
    """What an upstream announced, in order, and a way to wait for the next of a kind."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []
        self.tools: list[Any] = []
        """The tools that each change is about; None where they are not known, or it is not about tools."""
        self._news = anyio.Event()

    def __call__(self, name: str, kind: str, principal: str | None, tools: object = None) -> None:
        self.all.append((name, kind))
        self.tools.append(tools)
        self._news.set()
        self._news = anyio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, looking at every change."""
        while not condition():
            await self._news.wait()


def raw_stdio(*flags: str, **settings: Any) -> UpstreamSettings:
    """Settings that start tests/servers/raw_stdio.py."""
    args = (str(SERVERS / "raw_stdio.py"), *flags)
    return UpstreamSettings(command=sys.executable, args=args, **settings)


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
def stdio() -> Callable[..., UpstreamSettings]:
    return raw_stdio


@pytest.fixture
def limits() -> Timeouts:
    return Timeouts(call=10, idle=10)


@pytest.fixture
def connect(changes: Changes) -> Connect:
    """`async with connect(settings) as upstream`: one upstream, settled (ready, or failed if `ready=False`)."""

    @asynccontextmanager
    async def connected(settings: UpstreamSettings, *, ready: bool = True, era: Any = None) -> AsyncIterator[Upstream]:
        with anyio.fail_after(30):
            upstreams = Upstreams({"raw": settings}, on_change=changes)
            if era is not None:
                upstreams["raw"].eras.found(era, era)
                upstreams["raw"].eras.silent.add("handshake" if era == "modern" else "modern")
            async with upstreams:
                assert await upstreams.settled(20)
                if ready:
                    assert upstreams["raw"].state is UpstreamState.READY, upstreams["raw"].cause
                yield upstreams["raw"]

    return connected


@pytest.fixture
def serve() -> Serve:
    """`async with serve("flag", ...) as origin`: tests/servers/raw_http.py on a loopback port."""

    @asynccontextmanager
    async def serving(*flags: str) -> AsyncIterator[str]:
        command = [sys.executable, str(SERVERS / "raw_http.py"), *flags]
        async with await anyio.open_process(command, stderr=None) as process:
            try:
                assert process.stdout is not None
                port = (await process.stdout.receive()).decode().strip()
                yield f"http://127.0.0.1:{port}"
            finally:
                with suppress(ProcessLookupError):  # some tests have it end by itself
                    process.kill()

    return serving

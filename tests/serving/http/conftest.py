"""A real server of the gateway's own on a port of this process, on both of uvicorn's protocols and both event loops."""

import asyncio
import importlib.util
import sys
from contextlib import asynccontextmanager
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from gateway.serving.http import KNOWN, STANDING, Limits, Listening, serve

LOOPS = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(
        ("asyncio", {"use_uvloop": True}),
        id="uvloop",
        marks=pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed"),
    ),
]


@pytest.fixture(params=LOOPS)
def anyio_backend(request):
    return request.param


@pytest.fixture(params=["httptools", "h11"])
def protocol(request, monkeypatch):
    """Which of uvicorn's protocols is used: h11 where httptools is not installed."""
    if request.param == "h11":
        monkeypatch.setitem(sys.modules, "gateway.serving.http.httptools_protocol", None)
    else:
        pytest.importorskip("httptools")
    return request.param


class Application:
    """Answers by path: / at once, /body when the body is whole, /hang never (its headers at once), /flood without end,
    /deaf never, whether somebody is still there or not, /slow once it is `released` (its headers at once),
    /late then too (with its headers).

    A request with the header `token: right` is of somebody who is known.
    """

    def __init__(self):
        self.hanging = 0
        self.changed = anyio.Event()
        self.released = anyio.Event()
        self.asked: list[str] = []

    async def until_hanging(self, count):
        while self.hanging < count:
            await self.changed.wait()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        self.asked.append(scope["path"])
        if (b"token", b"right") in scope["headers"]:
            scope[STANDING] = KNOWN
        body, more = b"", scope["path"] == "/body"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        if scope["path"] == "/deaf":
            self._count(1)
            await anyio.sleep_forever()
        if scope["path"] in ("/hang", "/flood"):
            await self._without_end(scope["path"], receive, send)
            return
        if scope["path"] == "/slow":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            self._count(1)
            await self.released.wait()
            await send({"type": "http.response.body", "body": b"over"})
            self._count(-1)
            return
        if scope["path"] == "/late":
            self._count(1)
            await self.released.wait()
            self._count(-1)
        answer = b"%d" % len(body)
        headers = [(b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _without_end(self, path, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        self._count(1)
        async with anyio.create_task_group() as tasks:
            if path == "/flood":
                tasks.start_soon(self._flood, send)
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()
        self._count(-1)

    async def _flood(self, send):
        while True:
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await anyio.lowlevel.checkpoint()

    def _count(self, change):
        self.hanging += change
        self.changed.set()
        self.changed = anyio.Event()


@asynccontextmanager
async def listening(app, **limits):
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            bound = asyncio.Queue()
            tasks.start_soon(
                partial(serve, app, Listening("127.0.0.1", 0, "test", Limits(**limits)), on_bound=bound.put_nowait)
            )
            yield await bound.get()
            tasks.cancel_scope.cancel()


@pytest.fixture
def application():
    return Application()


@pytest.fixture
def served(application, protocol):
    """The application under limits: `served(request=1.0, ...)` gives the port."""
    return partial(listening, application)

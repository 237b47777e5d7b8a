"""Answers do not wait to fill packets: TCP_NODELAY is set on what every listener of ours accepts."""

import asyncio
import os
import socket
import stat
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest
import uvicorn

from gateway.admission.admission import Admission
from gateway.config.http_settings import HttpSettings
from gateway.config.model_proxy_settings import ModelProxySettings
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.repair_request import Repairer
from gateway.content.store import MemoryStore
from gateway.serving.control.listeners import listen_on_loopback
from gateway.serving.control.server import Commands, answer_callers
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.http import http_app, serve_http
from gateway.serving.model_proxy import serve_model_proxy
from gateway.testing.model_apis.server import listen

pytestmark = pytest.mark.anyio


def accepted_from(address):
    """The other end of a connection, which this process has accepted; a copy."""
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # closed by now
            if stat.S_ISSOCK(os.fstat(int(entry)).st_mode):
                copy = socket.socket(fileno=os.dup(int(entry)))
                if is_connected_to(copy, address):
                    return copy
                copy.close()
    return None


def is_connected_to(connection, address):
    try:
        return connection.getpeername() == address
    except OSError:
        return False


async def is_undelayed(port):
    with anyio.fail_after(30):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            address = stream.extra(anyio.abc.SocketAttribute.local_address)
            while (accepted := accepted_from(address)) is None:  # noqa: ASYNC110 - the system tells nobody
                await anyio.sleep(0.01)
            with accepted:
                while not accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY):  # noqa: ASYNC110
                    await anyio.sleep(0.01)  # it was accepted a moment ago
            return True


async def bound(tasks, server):
    ports = asyncio.Queue()
    tasks.start_soon(partial(server, on_bound=ports.put_nowait))
    return await ports.get()


async def gateway(tasks, service):
    app = http_app(service, HttpSettings(port=0), Identity("sample", "1.0"))
    return await bound(tasks, partial(serve_http, app, HttpSettings(port=0)))


async def model_proxy(tasks, service):
    settings = ModelProxySettings(to="http://127.0.0.1:9", port=0)
    no_workers: Any = None
    repairer = Repairer(MemoryStore(StoreSettings()), no_workers, settings.history)
    return await bound(tasks, partial(serve_model_proxy, settings, repairer))


async def control(tasks, service):
    async def nothing():
        return {}

    listener, endpoint = await listen_on_loopback()
    tasks.start_soon(answer_callers, listener, endpoint, Commands(nothing, nothing, lambda: None))
    return int(endpoint.address)


async def silent(scope, receive, send):
    """Not asked anything."""


class NoService:
    """A service that nobody asks."""

    admission = Admission()

    async def header_schema(self, *_):
        return None

    def subscribe(self, _):
        return lambda: None


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds accepted connections in /proc")
@pytest.mark.parametrize("listener", [gateway, model_proxy, control])
async def test_every_listener_sets_it(listener):
    async with anyio.create_task_group() as tasks:
        assert await is_undelayed(await listener(tasks, NoService()))
        tasks.cancel_scope.cancel()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="finds accepted connections in /proc")
async def test_the_simulated_model_apis_set_it():
    listener = listen(0)
    server = uvicorn.Server(uvicorn.Config(silent, lifespan="off", log_config=None))
    task = asyncio.create_task(server._serve([listener]))
    try:
        assert await is_undelayed(listener.getsockname()[1])
    finally:
        server.should_exit = True
        await task
        listener.close()

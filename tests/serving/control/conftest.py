"""A runtime folder for each test, and gateways in it that are no more than an open door."""

import os
import time
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import pytest

from gateway.serving.control.client import ask
from gateway.serving.control.listeners import listen_on_loopback, listen_on_socket
from gateway.serving.control.records import GatewayRecord, stem, write_record
from gateway.serving.control.server import Commands, answer_callers
from gateway.system.runtime_dir import own_folder

posix = pytest.mark.skipif(os.name != "posix", reason="Unix sockets and file modes are POSIX's")


@pytest.fixture
def runtime(tmp_path_factory, monkeypatch):
    """The user's runtime folder."""
    folder = tmp_path_factory.mktemp("run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "data"))
    return folder


@pytest.fixture
def door(runtime):
    """`async with door(status=...) as record`: a control endpoint that is served, with its record written."""

    async def nothing():
        return {}

    @asynccontextmanager
    async def opened(kind="unix", *, status=nothing, reload=nothing, stop=lambda: None, started=None):
        started = started or time.time()
        folder = own_folder()
        listening = listen_on_socket(folder, stem(os.getpid(), started)) if kind == "unix" else listen_on_loopback()
        listener, endpoint = await listening
        record = GatewayRecord(os.getpid(), started, "mine", "1", None, None, endpoint)
        path = write_record(folder, record)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer_callers, listener, endpoint, Commands(status, reload, stop))
                yield record
                tasks.cancel_scope.cancel()
        path.unlink(missing_ok=True)
        endpoint.remove()

    return opened


@pytest.fixture
def asked():
    """Ask from another thread, as another process would."""

    async def call(record, command, seconds=10.0):
        return await anyio.to_thread.run_sync(ask, record, command, seconds)

    return call


@pytest.fixture
def said():
    """Say bytes at the door, and give back all that comes until it is closed."""

    def talk(record, line):
        with record.endpoint.connect(10) as connection:
            try:
                connection.sendall(line)
                return b"".join(iter(lambda: connection.recv(65_536), b""))
            except (BrokenPipeError, ConnectionResetError):
                return b""

    async def call(record, line):
        return await anyio.to_thread.run_sync(talk, record, line)

    return call

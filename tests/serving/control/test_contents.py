"""Content at the door: what goes in, what comes out, and what fools and failing stores get."""

import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from io import BytesIO

import anyio
import anyio.to_thread
import pytest

from gateway.config.store_settings import StoreSettings
from gateway.content.store import MemoryStore, fetch_bytes
from gateway.errors import GatewayError
from gateway.serving.control import transfer_content
from gateway.serving.control.client import ControlUnanswered, ask
from gateway.serving.control.contents import Contents
from gateway.serving.control.listeners import listen_on_loopback, listen_on_socket
from gateway.serving.control.protocol import format_line, parse_line
from gateway.serving.control.records import GatewayRecord
from gateway.serving.control.server import Commands, answer_callers
from gateway.system.runtime_dir import own_folder

pytestmark = pytest.mark.anyio


class NoLinks:
    is_served = False

    def link(self, stored, owner):
        return None


@pytest.fixture
def store():
    return MemoryStore(StoreSettings(max_bytes=3_000_000, expires=60), key=b"k" * 32)


@pytest.fixture
def door(runtime, store):
    """`async with door() as record`: a control endpoint that takes and gives content."""

    async def nothing():
        return {}

    @asynccontextmanager
    async def opened(kind="unix", *, content=None, max_bytes=2_000_000):
        listening = listen_on_socket(own_folder(), "contents") if kind == "unix" else listen_on_loopback()
        listener, endpoint = await listening
        transfer = content or Contents(store, NoLinks(), max_bytes, "ann").answer
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                commands = Commands(nothing, nothing, lambda: None, content=transfer)
                tasks.start_soon(answer_callers, listener, endpoint, commands)
                yield GatewayRecord(1, 1.0, "mine", "1", None, None, endpoint)
                tasks.cancel_scope.cancel()
        endpoint.remove()

    return opened


def quietly(done, size):
    assert 0 < done <= size


def put(record, content, **described):
    whole = {"size": len(content), **described}
    return anyio.to_thread.run_sync(transfer_content.upload_content, record, BytesIO(content), whole, quietly)


async def get(record, handle, owner=None):
    pieces = []
    told = await anyio.to_thread.run_sync(
        transfer_content.download_content, record, handle, owner, pieces.append, quietly
    )
    return told, b"".join(pieces)


@pytest.mark.parametrize("kind", ["unix", "tcp"])
@pytest.mark.parametrize("size", [0, 1, 4_096, 1_500_000])
async def test_content_goes_in_and_comes_out_again(door, store, kind, size):
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with door(kind) as record:
        told = await put(record, content, name="../a.bin")
        assert (told["name"], told["size"], told["file"]) == ("a.bin", size, "a.bin")
        assert await fetch_bytes(store, told["handle"], owner="ann") == content
        again, back = await get(record, told["handle"])
        assert (again, back) == (told, content)


async def test_whose_it_is_is_said_or_else_the_hosts(door):
    async with door() as record:
        told = await put(record, b"of bob", owner="bob")
        with pytest.raises(GatewayError, match="no content"):
            await get(record, told["handle"])
        assert (await get(record, told["handle"], "bob"))[1] == b"of bob"
        assert (await anyio.to_thread.run_sync(partial(ask, record, "content", do="list")))["content"] == []


async def test_what_is_too_large_is_refused_before_it_is_sent_or_by_the_store(door, store):
    async with door() as record:
        with pytest.raises(GatewayError, match="max_upload_bytes"):
            await put(record, b"x" * 2_000_001)
    async with door(max_bytes=10_000_000) as record:
        with pytest.raises(GatewayError, match=r"store\.max_bytes"):
            await put(record, b"x" * 9_000_000)
    assert store.usage == (0, 0)


async def test_content_that_breaks_off_is_not_kept(door, store):
    async with door() as record:
        with pytest.raises(ControlUnanswered, match="shorter"):
            await anyio.to_thread.run_sync(
                transfer_content.upload_content, record, BytesIO(b"half"), {"size": 8}, quietly
            )
        assert (await put(record, b"whole"))["size"] == 5  # the door is open for the next one
    assert store.usage[1] == 1


@pytest.mark.parametrize(
    "request_",
    [
        {},
        {"do": "sing"},
        {"do": "put"},
        {"do": "put", "size": "4"},
        {"do": "put", "size": -1},
        {"do": "get"},
        {"do": "get", "handle": 5},
        {"do": "get", "handle": "../../etc/passwd"},
        {"do": "delete", "handle": ""},
    ],
)
async def test_what_cannot_be_meant_is_refused(door, request_):
    def said(record):
        with record.endpoint.connect(10) as connection:
            connection.sendall(format_line({"command": "content", **request_}))
            connection.shutdown(1)
            return parse_line(connection.makefile("rb").readline())

    async with door() as record:
        assert (await anyio.to_thread.run_sync(said, record))["ok"] is False


async def test_the_loopback_wants_its_token_for_content_too(door, store):
    async with door("tcp") as record:
        stranger = replace(record, endpoint=replace(record.endpoint, token="guess"))
        with pytest.raises(GatewayError, match="the token is wrong"):
            await put(stranger, b"x" * 1_000)
    assert store.usage == (0, 0)


async def test_a_store_that_fails_costs_one_caller_and_not_the_door(door, store):
    async def failing(request, incoming):
        if request["do"] == "list":
            raise KeyError("secret")
        yield json.dumps({"ok": True, "result": {"size": 10}}).encode() + b"\nhalf"
        raise GatewayError("the store cannot be reached")

    async with door(content=failing) as record:
        with pytest.raises(GatewayError, match="KeyError") as told:
            await anyio.to_thread.run_sync(partial(ask, record, "content", do="list"))
        assert "secret" not in str(told.value)
        with pytest.raises(ControlUnanswered, match="broke off after 4 of 10 bytes"):
            await get(record, "img_7h3k2m9q4w8x")
        assert await anyio.to_thread.run_sync(ask, record, "status") == {}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not number its sockets like this")
async def test_content_goes_in_with_more_than_1024_files_open(door, tmp_path):
    # In a process of its own: the limit is the process's.
    script = tmp_path / "many.py"
    script.write_text(
        "import io, os, resource, sys\n"
        "from gateway.serving.control.endpoint import Endpoint\n"
        "from gateway.serving.control.records import GatewayRecord\n"
        "from gateway.serving.control.transfer_content import upload_content\n"
        "_, most = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))\n"
        "kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]\n"
        "record = GatewayRecord(1, 0.0, 'x', '1', None, None, Endpoint('unix', sys.argv[1]))\n"
        "described = {'size': 4, 'media_type': 'text/plain'}\n"
        "told = upload_content(record, io.BytesIO(b'many'), described, lambda done, size: None)\n"
        "print(max(kept), told['size'])\n"
    )
    async with door("unix") as record:
        command = [sys.executable, str(script), record.endpoint.address]
        run = await anyio.run_process(command, check=False, env={**os.environ, "PYTHONPATH": os.getcwd()})
    assert run.stderr == b""
    highest, size = map(int, run.stdout.split())
    assert (highest > 1_024, size) == (True, 4)

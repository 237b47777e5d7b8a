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

from gateway.config.access_settings import AccessSettings, TokenSettings
from gateway.config.issuer_settings import IssuerSettings
from gateway.config.schema import Settings
from gateway.config.store_settings import StoreSettings
from gateway.content.store import MemoryStore, fetch_bytes
from gateway.errors import GatewayError
from gateway.serving.control import transfer_content
from gateway.serving.control.client import ControlUnanswered, ask
from gateway.serving.control.content_owners import ContentOwners
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
    async def opened(kind="unix", *, content=None, max_bytes=2_000_000, owners=None):
        listening = listen_on_socket(own_folder(), "contents") if kind == "unix" else listen_on_loopback()
        listener, endpoint = await listening
        transfer = content or Contents(store, NoLinks(), max_bytes, owners or ContentOwners("ann")).answer
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


def with_tokens(only_http: bool | None = True, **more):
    """Owners of a gateway whose hosts are those of dave's and carl's tokens."""
    dave = TokenSettings(hash="sha256:" + "0" * 64)
    tokens = {"dave": dave, "laptop": dave.model_copy(update={"principal": "carl"})}
    settings = Settings(access=AccessSettings(tokens=tokens, **more))
    return ContentOwners("local", lambda: settings, only_http=lambda: only_http)


async def asked(record, **request):
    return await anyio.to_thread.run_sync(partial(ask, record, "content", **request))


async def test_the_operator_finds_content_whoever_owns_it_and_is_told_whose_it_is(door):
    async with door(owners=with_tokens()) as record:
        handle = (await put(record, b"of dave", owner="dave"))["handle"]
        told, content = await get(record, handle)
        assert (told["owner"], told["default_owner"], content) == ("dave", "local", b"of dave")
        assert (await asked(record, do="describe", handle=handle))["owner"] == "dave"
        listed = await asked(record, do="list")
        assert (listed["owner"], listed["content"], listed["others"]) == ("local", [], ["dave"])
        assert (await asked(record, do="list", owner="dave"))["others"] == []


async def test_content_of_another_owner_is_not_removed_unless_the_owner_is_named(door, store):
    async with door(owners=with_tokens()) as record:
        handle = (await put(record, b"of dave", owner="dave"))["handle"]
        with pytest.raises(GatewayError, match=r"belongs to dave, so it was not removed.*--owner dave"):
            await asked(record, do="delete", handle=handle)
        with pytest.raises(GatewayError, match=r"carl has no content .*it belongs to dave"):
            await asked(record, do="delete", handle=handle, owner="carl")
        assert await fetch_bytes(store, handle, owner="dave") == b"of dave"
        await asked(record, do="delete", handle=handle, owner="dave")
        assert not await store.holds("dave")


async def test_a_handle_that_nobody_has_is_unknown_among_named_owners(door):
    async with door(owners=with_tokens()) as record:
        with pytest.raises(GatewayError, match="among that of local, token, dave, carl"):
            await get(record, "img_7h3k2m9q4w8x")


async def test_content_that_is_gone_is_gone_for_the_operator_too(door, store):
    async with door(owners=with_tokens()) as record:
        handle = (await put(record, b"of dave", owner="dave"))["handle"]
        store.resize(StoreSettings(max_bytes=1))
        with pytest.raises(GatewayError, match="is gone"):
            await get(record, handle)


@pytest.mark.parametrize(
    ("owners", "owner", "note"),
    [
        (with_tokens(), None, "kept for local, which no host of this gateway is: --owner NAME .* (dave, carl)"),
        (with_tokens(), "alcie", "no token or person has the principal 'alcie': there are: dave, carl"),
        (with_tokens(), "dvae", "no token or person has the principal 'dvae': did you mean 'dave'?"),
        (with_tokens(), "dave", None),
        (with_tokens(), "local", None),
        (with_tokens(only_http=False), None, None),
        (with_tokens(issuers={"idp": IssuerSettings(issuer="https://idp.example", audience=("x",))}), "alcie", None),
        (with_tokens(only_http=None), None, "kept for local, as hosts on stdio are: --owner NAME .* (dave, carl)"),
        (ContentOwners("ann", only_http=lambda: True), None, None),
    ],
)
async def test_content_that_no_host_can_have_is_noted_as_it_is_put(door, owners, owner, note):
    async with door(owners=owners) as record:
        told = await put(record, b"x", **({} if owner is None else {"owner": owner}))
    if note is None:
        assert "notes" not in told
    else:
        begin, _, end = note.partition(" .* ")
        assert told["notes"][0].startswith(begin)
        assert end in told["notes"][0]


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

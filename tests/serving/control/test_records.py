"""Who runs, and what those leave behind who ended without a word."""

import json
import os
import socket
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from gateway.serving.control.endpoint import Endpoint
from gateway.serving.control.records import GatewayRecord, running, write_record
from gateway.system.runtime_dir import own_folder

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="Unix sockets and file modes are POSIX's"),
]


async def found():
    return await anyio.to_thread.run_sync(running)


async def test_gateways_are_found_the_oldest_first(door):
    async with door(started=2_000.0) as younger, door(started=1_000.0) as older, door("tcp", started=3_000.0) as last:
        assert await found() == [older, younger, last]
    assert await found() == []


async def test_nobody_else_can_read_a_record_or_reach_a_socket(door):
    async with door() as record:
        for path in own_folder().iterdir():
            assert path.stat().st_mode & 0o777 == 0o600
        assert {path.suffix for path in own_folder().iterdir()} == {".json", ".sock"}
        assert json.loads((own_folder() / f"{record.stem}.json").read_text())["pid"] == os.getpid()


async def test_what_a_killed_gateway_left_is_taken_away(door):
    folder = own_folder()
    left = folder / "1-1000.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(left))
    write_record(folder, GatewayRecord(1, 1000.0, "dead", "1", None, None, Endpoint("unix", str(left))))
    write_record(
        folder, GatewayRecord(1, 1001.0, "gone", "1", None, None, Endpoint("unix", str(folder / "1-1001.sock")))
    )
    async with door() as record:
        assert await found() == [record]
        assert {path.stem for path in folder.iterdir()} == {record.stem}


async def test_a_socket_without_a_record_goes_with_its_process_only(runtime):
    ended = await anyio.open_process([sys.executable, "-c", ""])
    await ended.wait()
    folder = own_folder()
    for pid in (ended.pid, os.getpid()):  # the second is about to write its record
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(folder / f"{pid}-1000.sock"))
    assert await found() == []
    assert [path.name for path in folder.iterdir()] == [f"{os.getpid()}-1000.sock"]


async def test_files_that_are_no_records_are_passed_over(door):
    async with door() as record:
        for name, text in (("a.json", "{"), ("b.json", "[1]"), ("c.json", "{}"), ("d.json", '{"endpoint": 1}')):
            (own_folder() / name).write_text(text)
        assert await found() == [record]


async def test_a_folder_with_a_long_name_gets_a_socket_elsewhere(door, runtime, monkeypatch):
    deep = runtime / ("x" * 90)
    deep.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    async with door() as record:
        assert not record.endpoint.address.startswith(str(runtime))
        assert os.stat(os.path.dirname(record.endpoint.address)).st_mode & 0o777 == 0o700
        assert await found() == [record]
    assert not os.path.exists(os.path.dirname(record.endpoint.address))


def test_only_a_sockets_own_folder_ends_with_it(tmp_path: Path) -> None:
    own, others = tmp_path / "mcp-gateway-own", tmp_path / "mcp-gateway-others"
    for folder in (own, others):
        folder.mkdir()
        (folder / "s").touch()
    (others / "notes.txt").write_text("kept", "utf-8")
    for folder in (own, others):
        Endpoint("unix", str(folder / "s")).remove()
    assert not own.exists()
    assert [each.name for each in others.iterdir()] == ["notes.txt"]

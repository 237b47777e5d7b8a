"""Who listens on a port: found in the tables of the system, and never by guessing."""

import os
import socket
import sys

import pytest

from gateway.cli.diagnosis.ports import Listener, listener

TABLE = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
ROW = (
    "   0: 0100007F:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1\n"
)


def machine(folder, words, *, state="0A"):
    """A made-up /proc with one process that holds port 8484."""
    (folder / "net").mkdir()
    (folder / "net" / "tcp").write_text(TABLE + ROW.format(port=8484, state=state, inode=77))
    process = folder / "4711"
    (process / "fd").mkdir(parents=True)
    (process / "fd" / "3").symlink_to("socket:[77]")
    (process / "cmdline").write_bytes("\0".join(words).encode())
    (process / "comm").write_text(words[0].rpartition("/")[2] + "\n")
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="/proc is Linux's")
@pytest.mark.parametrize(
    ("words", "name", "is_gateway"),
    [
        (["/usr/bin/nginx", "-g", "secret"], "nginx", False),
        (["python3", "/usr/bin/mcp-gateway", "serve", "--http"], "python3", True),
        (["python3", "-m", "gateway", "serve", "--http"], "python3", True),
        (["python3", "-m", "gateway", "demo"], "python3", False),
    ],
)
def test_a_listener_is_named_without_its_arguments(tmp_path, words, name, is_gateway):
    assert listener(8484, machine(tmp_path, words)) == Listener(4711, name, is_gateway)


@pytest.mark.skipif(sys.platform == "win32", reason="/proc is Linux's")
def test_a_connection_is_no_listener_and_another_port_is_not_meant(tmp_path):
    assert listener(8484, machine(tmp_path, ["x"], state="01")) is None
    assert listener(8485, tmp_path) is None


def test_without_such_tables_nothing_is_said(tmp_path):
    assert listener(8484, tmp_path / "nowhere") is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_this_very_process_is_found():
    with socket.create_server(("127.0.0.1", 0)) as held:
        found = listener(held.getsockname()[1])
    assert found is not None
    assert found.pid == os.getpid()

"""Processes of the demo: they are up when the block is entered, and gone when it is left."""

import os
import socket
import sys
from pathlib import Path

import anyio
import pytest

from gateway.cli.demo.processes import CannotStart, http_process

pytestmark = pytest.mark.anyio

SERVER = """
import socket, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[2], "w").write(str(child.pid))
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].close()
"""


def _port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


async def _gone(pid: int) -> None:
    """Wait until the process has ended; whoever inherited it may take a moment to reap it."""
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").exists() and ") Z " in Path(f"/proc/{pid}/stat").read_text():
            return
        await anyio.sleep(0.02)


async def test_a_process_is_reachable_inside_the_block_and_gone_after_it_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    port, note = _port(), tmp_path / "child"
    command = [sys.executable, "-c", SERVER, str(port), str(note)]
    with anyio.fail_after(60):
        async with http_process("it", command, port=port, variables={}, folder=tmp_path):
            await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
            child = int(note.read_text())
            os.kill(child, 0)
        await _gone(child)
        with pytest.raises(OSError):
            await anyio.connect_tcp("127.0.0.1", port)


async def test_a_process_that_ends_at_once_is_an_error_with_what_it_wrote(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no library here')"]
    with anyio.fail_after(60), pytest.raises(CannotStart, match=r"it ended with code 1\nno library here"):
        async with http_process("it", command, port=_port(), variables={}, folder=tmp_path):
            pytest.fail("entered")


async def test_a_process_is_stopped_when_the_block_is_cancelled(tmp_path: Path) -> None:
    port, note = _port(), tmp_path / "child"
    command = [sys.executable, "-c", SERVER, str(port), str(note)]
    with anyio.fail_after(60):
        with anyio.CancelScope() as scope:
            async with http_process("it", command, port=port, variables={}, folder=tmp_path):
                scope.cancel()
                await anyio.sleep_forever()
        await _gone(int(note.read_text()))

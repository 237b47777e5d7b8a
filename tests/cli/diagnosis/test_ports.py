"""Who listens on a port: asked of the system, and never guessed."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.cli.diagnosis.ports import Listener, listener, record_of
from gateway.serving.control.endpoint import Endpoint
from gateway.serving.control.records import GatewayRecord

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="macOS tells only the superuser")

SERVER = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
input()
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., tuple[int, int]]]:
    """Start a program that listens, with this file name and these arguments: its process id and its port."""
    with ExitStack() as started:

        def start(name: str, *arguments: str) -> tuple[int, int]:
            script = tmp_path / name
            script.write_text(SERVER)
            command = [sys.executable, str(script), *arguments]
            process = started.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            started.callback(process.kill)
            assert process.stdout is not None
            return process.pid, int(process.stdout.readline())

        yield start


@pytest.mark.parametrize(
    ("words", "is_gateway"),
    [
        (("nginx", "-g", "secret"), False),
        (("mcp-gateway", "serve", "--http"), True),
        (("gateway", "serve", "--http"), True),
        (("gateway", "demo"), False),
    ],
)
def test_a_listener_is_named_without_its_arguments(
    program: Callable[..., tuple[int, int]], words: tuple[str, ...], is_gateway: bool
):
    pid, port = program(*words)
    found = listener(port)
    assert found is not None
    assert (found.pid, found.is_gateway) == (pid, is_gateway)
    assert not any(word in found.name for word in words)


def test_a_connection_is_no_listener_and_another_port_is_not_meant():
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert listener(client.getsockname()[1]) is None


def test_this_very_process_is_found_on_either_kind_of_address():
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            held = socket.create_server((address, 0), family=family)
        except OSError:
            assert family == socket.AF_INET6  # not every machine has it
            continue
        with held:
            found = listener(held.getsockname()[1])
        assert isinstance(found, Listener)
        assert found.pid == os.getpid()


@pytest.mark.parametrize(
    ("is_gateway", "has_record", "found"),
    [(False, False, None), (True, False, "front"), (True, True, "behind")],
    ids=["an upstream that listens", "a worker", "a gateway behind another"],
)
def test_a_program_that_a_gateway_has_started_is_that_gateway_only_as_its_worker(
    is_gateway, has_record, found, monkeypatch
):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        front = GatewayRecord(os.getpid(), 0, "front", "1", None, None, Endpoint("unix", "/none"))
        behind = replace(front, pid=child.pid, name="behind")
        monkeypatch.setattr("gateway.cli.diagnosis.ports.running", lambda: [front, *([behind] if has_record else [])])
        record = record_of(Listener(child.pid, "python", is_gateway))
        child.communicate(b"\n")
    assert (record and record.name) == found

"""The server of the cases, and clients that leave before their answer."""

import json
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request

import pytest

from lab.case_server import case_server
from lab.cases import content, text
from lab.frameworks import ROOT
from tests.servers.loopback import open_url

LONG = {"long": content(text("x" * 20_000_000))}
"""More than a connection holds, so that it cannot be written to a client that does not read."""
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "long"}}


def leave_early(url: str, sent: bytes) -> None:
    """Send this, then reset the connection."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname or "", where.port or 0)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(sent)
        if sent.endswith(b"}"):
            client.recv(1)  # the answer has begun


def test_a_client_that_leaves_before_its_answer_costs_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    body = json.dumps(CALL).encode()
    head = f"POST /mcp HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with case_server(LONG) as url:
        leave_early(url, head + body)
        leave_early(url, head[:20])
        with open_url(Request(url, body, {"Connection": "close"}), 30) as reply:
            answer = json.load(reply)
        for thread in threading.enumerate():
            if "process_request_thread" in thread.name:
                thread.join(30)
    assert len(answer["result"]["content"][0]["text"]) == 20_000_000
    assert capfd.readouterr() == ("", "")


def test_what_goes_wrong_otherwise_is_still_said(capfd: pytest.CaptureFixture[str]) -> None:
    with case_server(LONG) as url:
        leave_early(url, b"POST /mcp HTTP/1.1\r\nHost: here\r\nContent-Length: 1\r\n\r\n}")
    assert "JSONDecodeError" in capfd.readouterr().err


def test_a_host_that_leaves_before_its_answer_costs_no_traceback_over_stdio(tmp_path: Path) -> None:
    (tmp_path / "results").write_text(json.dumps(LONG), "utf-8")
    command = [sys.executable, "-m", "lab.case_server", str(tmp_path / "results"), str(tmp_path / "calls")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(CALL).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.read(1) == b"{"
        process.stdout.close()
        assert process.stderr.read() == b""

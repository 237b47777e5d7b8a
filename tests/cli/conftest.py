"""What the command line's tests share: the command run in this process, and as a process of its own."""

import json
import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import keyring
import pytest

from gateway.cli import progress
from gateway.cli.app import run
from tests.cli.named_options import foreign_options
from tests.keyring_file import FileKeyring

PICTURES = Path(__file__).parents[1] / "servers" / "pictures_stdio.py"
PATIENCE = 60


class Ended(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    def json(self):
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def no_configuration(tmp_path_factory, monkeypatch):
    """Tests stand in an empty folder, with nobody's configuration."""
    folder = tmp_path_factory.mktemp("nowhere")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    monkeypatch.delenv("MCP_GATEWAY_CONFIG", raising=False)
    monkeypatch.delenv("MCP_GATEWAY_TOKEN", raising=False)
    # Nobody outside of this machine is asked anything.
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for variable in ("https_proxy", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture(autouse=True)
def unannounced(monkeypatch):
    """No command in this process announces what it waits for, however slow the machine is."""
    monkeypatch.setattr(progress, "ANNOUNCED_AFTER", 3_600.0)


@pytest.fixture
def logs():
    """Whatever a command does to logging is undone."""
    root, own = logging.root, logging.getLogger("gateway")
    before = root.handlers[:], root.level, own.level
    yield
    root.handlers[:], own.level = before[0], before[2]
    root.setLevel(before[1])


@pytest.fixture
def command(capsys, logs):
    """Run the command in this process. What it sets in the environment goes with it, as with a process of its own."""

    def call(*arguments: str) -> Ended:
        given = [str(argument) for argument in arguments]
        with patch.dict(os.environ):
            code = run(given)
        out, err = capsys.readouterr()
        if code != 2 or "No such option" not in err:
            assert foreign_options(given, err) == set(), err
        return Ended(code, out, err)

    return call


@pytest.fixture
def pictures(tmp_path):
    """A configuration with the server of pictures; more lines may be added."""

    def text(more: str = "", *arguments: str) -> str:
        given = json.dumps([str(PICTURES), *arguments])
        return f"[upstreams.pics]\ncommand = {json.dumps(sys.executable)}\nargs = {given}\n{more}"

    def write(more: str = "", *arguments: str) -> Path:
        path = tmp_path / "pictures.toml"
        path.write_text(text(more, *arguments))
        return path

    write.text = text
    return write


@pytest.fixture
def ask():
    """Call a tool over a started gateway's stdio: its text. `fails`: whether it has to fail, None: then None."""

    def call(process: "Process", name: str, arguments: dict | None = None, *, fails: bool | None = False) -> str | None:
        process.send(id="ask", method="tools/call", params={"name": name, "arguments": arguments or {}})
        answer = process.answer("ask")
        failed = "error" in answer or answer["result"].get("isError", False)
        if fails is None and failed:
            return None
        assert failed is bool(fails), answer
        return json.dumps(answer["error"]) if "error" in answer else answer["result"]["content"][0]["text"]

    return call


@pytest.fixture
def http_server():
    """The address of a server that answers on loopback, by its path as tests/servers/raw_http.py says."""
    server = PICTURES.parent / "raw_http.py"
    with subprocess.Popen([sys.executable, str(server)], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


class Process:
    """The command as a process, its output line by line with a limit on every wait."""

    def __init__(self, *arguments: str, **options):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            **options,
        )
        self.out, self.err = (self._lines(stream) for stream in (self.process.stdout, self.process.stderr))
        self.lists_asked = 0

    def _lines(self, stream):
        lines = queue.Queue()

        def read():
            with stream:
                for line in stream:
                    lines.put(line.rstrip("\n"))
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        return lines

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def answer(self, request_id):
        """The answer to a request; what comes before it is passed over."""
        while (line := self.out.get(timeout=PATIENCE)) is not None:
            message = json.loads(line)
            if message.get("id") == request_id:
                return message
        raise AssertionError(f"the process ended without an answer to {request_id}")

    def next_request(self):
        """The next request of the gateway; what comes before it is passed over."""
        while (line := self.out.get(timeout=PATIENCE)) is not None:
            message = json.loads(line)
            if "method" in message and "id" in message:
                return message
        raise AssertionError("the process ended without a request")

    def initialize(self, name="test"):
        """A gateway answers this before `status` lists it: call a tool first."""
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        self.send(id=1, method="initialize", params=params)
        result = self.answer(1)["result"]
        self.send(method="notifications/initialized")
        return result

    def offered(self) -> list[str]:
        """The names of the tools once an upstream is there: a busy machine is told of them after the first list."""
        return self.listed(lambda names: not all(name.startswith("gateway_") for name in names))

    def listed(self, expected: Callable[[list[str]], bool]) -> list[str]:
        """The names of the tools once they are as expected, for a host that asks again whenever it is told to.

        Also when it is told while it still waits for an answer, which may be older than the change.
        """
        asked = {self._ask_list()}
        while (line := self.out.get(timeout=PATIENCE)) is not None:
            message = json.loads(line)
            if message.get("method") == "notifications/tools/list_changed":
                asked.add(self._ask_list())
            elif message.get("id") in asked:
                names = [tool["name"] for tool in message["result"]["tools"]]
                if expected(names):
                    return names
        raise AssertionError("the process ended without the tools")

    def _ask_list(self) -> str:
        """The id of a request of its own, so that a late answer is not taken for that of another."""
        self.lists_asked += 1
        request_id = f"list {self.lists_asked}"
        self.send(id=request_id, method="tools/list", params={})
        return request_id

    def rest(self, lines) -> list[str]:
        return list(iter(lambda: lines.get(timeout=PATIENCE), None))

    def line_with(self, text: str) -> str:
        """The next line on stderr that holds the text."""
        while (line := self.err.get(timeout=PATIENCE)) is not None:
            if text in line:
                return line
        raise AssertionError(f"the process ended without saying {text!r}")

    def wait(self) -> int:
        return self.process.wait(timeout=PATIENCE)


@pytest.fixture
def start():
    """Start the command as a process; it does not outlive the test."""
    started: list[Process] = []

    def call(*arguments: str, **options) -> Process:
        started.append(Process(*arguments, **options))
        return started[-1]

    yield call
    for one in started:
        one.process.stdin.close()
        one.process.kill()
        one.wait()


@pytest.fixture
def over_http(start, command):
    """Serve over HTTP on any free port: the process, and the address for hosts, once `status` lists it."""

    def call(config: Path) -> tuple[Process, str]:
        process = start("serve", "--http", "--port", "0", "--config", config)
        address = process.line_with("listening on").split()[2]
        until = time.monotonic() + PATIENCE
        while address not in command("status").out:
            assert time.monotonic() < until
            time.sleep(0.1)
        return process, address

    return call


@pytest.fixture
def ring(tmp_path, monkeypatch):
    """The file of a keyring of its own."""
    monkeypatch.setenv("KEYRING_FILE", str(tmp_path / "ring.json"))
    monkeypatch.setattr(keyring, "get_keyring", FileKeyring)
    return tmp_path / "ring.json"

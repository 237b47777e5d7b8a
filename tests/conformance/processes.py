"""The programs between which the suite measures: the upstream, and a gateway in front of it."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2

ROOT = Path(__file__).parents[2]
PATIENCE = 60
SAID = "listening on "
REVISION = "2026-07-28"


class DidNotStart(Exception):
    """A program ended, or said nothing for too long, before it listened."""


@contextmanager
def upstream(*options: str) -> Generator[str]:
    """The project's own upstream, with options of its command line; its url."""
    command = [sys.executable, "-m", "tests.conformance.upstream", *options]
    with listening(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as url:
        yield url


@contextmanager
def gateway(url: str) -> Generator[str]:
    """A gateway whose one upstream is at `url`, when that one's tools are there; its own url."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        config = Path(folder) / "mcp-gateway.toml"
        config.write_text(_configuration(url), "utf-8")
        # Nobody's folders, nothing remembered, and no proxy: nothing here leaves the machine.
        own = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"), folder)
        environ = {**os.environ, **own, "PYTHONPATH": str(ROOT), "MCP_GATEWAY_CACHE": "", "NO_PROXY": "127.0.0.1"}
        command = [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--http", "--port", "0"]
        with listening(command, environ) as served:
            _list_tools(served)
            yield served


def _configuration(url: str) -> str:
    """Nothing is renamed and nothing is changed; the first list waits for the upstream."""
    tables = {
        "gateway": {"prefix": "never", "profile": "patient"},
        "profiles.patient": {"extends": "passthrough"},
        "profiles.patient.sets": {"wait.tools_list": PATIENCE},
        "upstreams.suite": {"url": url, "transport": "http"},
    }
    lines: list[str] = []
    for name, table in tables.items():
        # Texts and numbers are written in TOML as in JSON.
        lines += [f"[{name}]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in table.items())]
    return "\n".join(lines)


def _list_tools(url: str) -> None:
    """The first list, which waits for the upstream."""
    envelope = {"protocolVersion": REVISION, "clientCapabilities": {}, "clientInfo": {"name": "ready", "version": "1"}}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in envelope.items()}
    httpx2.post(
        url,
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}},
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": "tools/list",
        },
        timeout=PATIENCE,
        trust_env=False,
    ).raise_for_status()


@contextmanager
def listening(command: list[str], environ: Mapping[str, str]) -> Generator[str]:
    """Run a program that says on stderr where it listens, until the block is left; the url that it says.

    Raises:
        DidNotStart: with what it has said instead.
    """
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
        heard = _Stderr(process)
        try:
            yield heard.url()
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()


class _Stderr:
    """What a program says on stderr, read all the time so that it never waits for us."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def url(self) -> str:
        """Where it listens, as soon as it says so."""
        deadline = time.monotonic() + PATIENCE
        with self._news:
            while (found := self._found()) is None:
                if self._ended or not self._news.wait(deadline - time.monotonic()):
                    raise DidNotStart("".join(self._lines) or "it said nothing")
        return found

    def _found(self) -> str | None:
        return next((line.split()[2] for line in self._lines if line.startswith(SAID)), None)

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

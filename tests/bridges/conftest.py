"""Every pairing of a host and an upstream, with a real gateway process between them or none.

Gateways, upstreams and hosts are started when a test first wants them, and kept for the others: `over(host, upstream)`
is the host of that pairing; the upstream `direct` is the one of the host's own era and transport, without a gateway.
"""

import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.bridges import hosts

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "servers" / "bridge_server.py"


class Served:
    """A process that serves HTTP, and says where on a line of one of its outputs."""

    def __init__(self, command: list[str], *, says: str, stream: str, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stream == "stdout" else subprocess.DEVNULL,
            stderr=subprocess.PIPE if stream == "stderr" else None,
            env={**os.environ, **(env or {})},
            text=True,
            encoding="utf-8",
        )
        self.lines: list[str] = []
        self._said = says
        self._found: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(target=self._read, args=(getattr(self.process, stream),), daemon=True)
        self._thread.start()
        line = self._found.get(timeout=60)
        assert line, f"it ended at once: {self.lines}"
        self.line = line

    def _read(self, stream: Any) -> None:
        with stream:
            for line in stream:
                self.lines.append(line.rstrip("\n"))
                if self._said in line:
                    self._found.put(line.strip())
        self._found.put("")

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join(10)


class Bridge:
    """Starts what a test wants, and ends it all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._kept: dict[Any, Any] = {}
        self._open_hosts: list[Any] = []
        self._processes: list[Served] = []
        self._logs: list[Any] = []

    def upstream(self, kind: str, *flags: str) -> dict[str, Any]:
        """The keys of a configuration that reach an upstream, as `handshake-stdio`; over HTTP it is started here."""
        era, transport = kind.split("-")
        options = ["--era", era, *flags]
        if transport == "stdio":
            return {"command": sys.executable, "args": [str(SERVER), *options]}
        server = self._once(("upstream", *options), lambda: self._served_upstream(options))
        path = "mcp" if transport == "http" else "sse"
        return {"url": f"http://127.0.0.1:{server.line}/{path}", "transport": transport}

    def config(self, upstreams: dict[str, dict[str, Any]], **sections: dict[str, Any]) -> Path:
        """A configuration file: one upstream keeps the names of its tools."""
        prefix = "never" if len(upstreams) == 1 else "always"
        gateway = {"prefix": prefix} | sections.pop("gateway", {})
        # JSON of strings, numbers, lists and plain tables is TOML where tables are written inline.
        lines = ["[gateway]", *(f"{key} = {toml(value)}" for key, value in gateway.items())]
        for name, values in sections.items():
            lines += [f"[{name}]", *(f"{key} = {toml(value)}" for key, value in values.items())]
        for name, values in upstreams.items():
            lines += [f"[upstreams.{name}]", *(f"{key} = {toml(value)}" for key, value in values.items())]
        path = self._folder / f"gateway{next(self._numbers)}.toml"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return path

    def gateway(self, config: Path, *options: str, profile: str = "passthrough") -> str:
        """The origin of a gateway that serves a configuration over HTTP."""
        command = [*serve(config, profile), "--http", "--port", "0", *options]
        served = self._started(Served(command, says="listening on ", stream="stderr", env=self._environment()))
        return served.line.partition("listening on ")[2].partition("/mcp")[0]

    def host(self, kind: str, where: Path | str, **options: Any) -> Any:
        """A new host of a kind, opened: `where` is a configuration (for stdio) or the origin of a gateway."""
        era, transport = kind.split("-")
        if transport == "stdio":
            wire = hosts.StdioWire(serve(Path(where)), env=self._environment(), stderr=self._log())
        else:
            headers = options.pop("headers", None)
            wires = {"http": hosts.HttpWire, "sse": hosts.SseWire}
            path = "mcp" if transport == "http" else "sse"
            wire = wires[transport](f"{where}/{path}", headers)
        return self._opened(hosts.Host(wire, era, **options))

    def direct(self, kind: str, *flags: str, **options: Any) -> Any:
        """A new host of a kind on an upstream of its own era, without a gateway."""
        era, transport = kind.split("-")
        found = self.upstream(kind, *flags)
        if transport == "stdio":
            wire = hosts.StdioWire([found["command"], *found["args"]])
        else:
            headers = options.pop("headers", None)
            wire = {"http": hosts.HttpWire, "sse": hosts.SseWire}[transport](found["url"], headers)
        return self._opened(hosts.Host(wire, era, **options))

    def where(self, host_kind: str, upstream_kind: str) -> Path | str:
        """What a host of a kind connects to, to reach an upstream of a kind: kept for all tests."""
        config = self._once(("config", upstream_kind), lambda: self.config({"bridge": self.upstream(upstream_kind)}))
        origin = self._once(("gateway", upstream_kind), lambda: self._warm(self.gateway(config)))
        return config if host_kind.endswith("stdio") else origin

    def _warm(self, origin: str) -> str:
        """A gateway whose upstream is there: what it says about itself is known, and kept for the next gateway."""
        before = self._remembered()
        host = self.host("modern-http", origin, name="first-host")
        host.call("counter")
        self.close_host(host)
        deadline = time.monotonic() + 60
        while self._remembered() <= before:
            assert time.monotonic() < deadline, "what the upstream has was not kept"
            time.sleep(0.02)
        return origin

    def _remembered(self) -> int:
        """Of how many upstreams the tools are kept for the next gateway."""
        kept = (self._folder / "cache").rglob("*.json")
        return sum(b'"counter"' in path.read_bytes() for path in kept)

    def over(self, host_kind: str, upstream_kind: str) -> Any:
        """The host of a pairing, kept for all tests as long as it is well."""
        key = ("host", host_kind, upstream_kind)
        if key in self._kept and self._kept[key].in_trouble:
            self.close_host(self._kept.pop(key))
        if upstream_kind == "direct":
            return self._once(key, lambda: self.direct(host_kind))
        return self._once(key, lambda: self.host(host_kind, self.where(host_kind, upstream_kind)))

    def close_host(self, host: Any) -> None:
        if host in self._open_hosts:
            self._open_hosts.remove(host)
        host.close()

    def close(self) -> None:
        """End hosts, then gateways and upstreams, then their logs: all of a kind at once, each takes its time."""
        for closing in (self._open_hosts, self._processes, self._logs):
            with ThreadPoolExecutor(16) as pool:
                ended = [pool.submit(one.close) for one in closing]
            closing.clear()
            for one in ended:
                with suppress(OSError):
                    one.result()

    def _served_upstream(self, options: list[str]) -> Served:
        command = [sys.executable, str(SERVER), "--transport", "http", *options]
        return self._started(Served(command, says="", stream="stdout"))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _started(self, served: Served) -> Served:
        self._processes.append(served)
        return served

    def _opened(self, host: Any) -> Any:
        self._open_hosts.append(host)
        return host.open()

    def _environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT), "MCP_GATEWAY_CACHE": str(self._folder / "cache")}

    def _log(self) -> Any:
        log = (self._folder / f"stderr{next(self._numbers)}").open("wb")
        self._logs.append(log)
        return log


def serve(config: Path, profile: str = "passthrough") -> list[str]:
    return [sys.executable, "-m", "gateway", "serve", "--config", str(config), "--profile", profile]


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@pytest.fixture(scope="package")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Generator[Bridge]:
    """For all tests of this folder, and no longer: fifty processes, even idle ones, are a tenth of a core."""
    made = Bridge(tmp_path_factory.mktemp("bridges"))
    yield made
    made.close()


@pytest.fixture
def fresh(tmp_path: Path) -> Generator[Bridge]:
    """The same for one test alone: what it starts ends with it."""
    made = Bridge(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def make_bridge() -> type[Bridge]:
    """For a module's own: `make_bridge(folder)`, to be closed."""
    return Bridge


@pytest.fixture
def host(bridge: Bridge, pairing: tuple[str, str]) -> Any:
    """The host of the pairing that a test is parametrized with."""
    found = bridge.over(*pairing)
    found.answers |= {
        "elicitation/create": lambda params: {"action": "accept"} if params.get("mode") == "url" else hosts.PERSON,
        "sampling/createMessage": lambda params: hosts.SAMPLED,
        "roots/list": lambda params: hosts.ROOTS,
    }
    return found

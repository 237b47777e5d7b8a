"""Whether a gateway that has been through a lot is what it was before: processes, files, threads, memory. Linux only.

    .venv/bin/python benchmarks/soak.py [--sessions 500] [--kills 500]

One `mcp-gateway serve --http` on the loopback, with six upstreams over stdio: four that work and are killed (SIGKILL,
half of them in the middle of a call, half while idle), one that never answers anything, one that floods its stderr.
Hosts open sessions (Streamable HTTP, some with a standing stream, and HTTP+SSE) and leave without goodbye. After a
warm-up the gateway is measured; after each trial it has some seconds to get back to that. Exit code 1 if it does not.
"""

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RAW_STDIO = ROOT / "tests" / "servers" / "raw_stdio.py"
KILLED = ("a", "b", "c", "d")
REVISION = "2025-11-25"

SESSION_IDLE_SECONDS = 1.0
RETURN_SECONDS = 45.0
"""How long the gateway may take to get back to where it was."""

RSS_MARGIN = 24 * 1024 * 1024
"""Bytes by which memory may differ: what an allocator keeps, not what grows with each session or process."""


class Size(NamedTuple):
    """What the gateway's process has now: itself and its descendants, open files, threads, bytes of RAM."""

    processes: int
    files: int
    threads: int
    rss: int

    def is_back_at(self, start: "Size") -> bool:
        """Whether nothing is left of what happened since."""
        return (
            self.processes == start.processes
            and self.files <= start.files
            and self.threads <= start.threads
            and self.rss <= start.rss + RSS_MARGIN
        )


class Row(NamedTuple):
    """One line of the table."""

    trial: str
    seconds: float
    size: Size


class Gateway:
    """A gateway that runs, as its hosts see it and as the system does."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process = process
        self.port = port

    def size(self) -> Size:
        """What it has now."""
        folder = Path("/proc", str(self.process.pid))
        status = (folder / "status").read_text()

        def field(name: str) -> int:
            return int(next(line for line in status.splitlines() if line.startswith(f"{name}:")).split()[1])

        files = len(list((folder / "fd").iterdir()))
        return Size(1 + len(self.descendants()), files, field("Threads"), field("VmRSS") * 1024)

    def descendants(self) -> dict[int, str]:
        """The command line of each process below it."""
        parents: dict[int, int] = {}
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                try:
                    stat = (folder / "stat").read_bytes().rpartition(b")")[2].split()
                except OSError:
                    continue
                if stat[0] != b"Z":
                    parents[int(folder.name)] = int(stat[1])
        below: set[int] = set()
        found = {self.process.pid}
        while found:
            found = {pid for pid, parent in parents.items() if parent in found}
            below |= found
        return {pid: line for pid in below if (line := _command_line(pid)) is not None}


def _command_line(pid: int) -> str | None:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return None


class Host:
    """One host's session over Streamable HTTP. It can leave without goodbye: `abandon`."""

    def __init__(self, port: int, path: str = "/mcp") -> None:
        self._path = path
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._session: str | None = None
        client = {"name": "soak", "version": "1"}
        self.ask("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client})

    def ask(self, method: str, params: Any) -> Any:
        """Send a request; the JSON-RPC answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if self._session is not None:
            headers |= {"mcp-session-id": self._session, "mcp-protocol-version": REVISION}
        self._connection.request("POST", self._path, body, headers)
        response = self._connection.getresponse()
        self._session = response.getheader("mcp-session-id") or self._session
        text = response.read().decode()
        events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
        return json.loads(events[-1] if events else text)

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; the result, or the error."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return answer.get("result") or answer.get("error")

    def open_stream(self) -> http.client.HTTPResponse:
        """Begin the standing stream, on the same connection, which can do nothing else from now on."""
        headers = {"accept": "text/event-stream", "mcp-protocol-version": REVISION}
        self._connection.request("GET", self._path, headers={**headers, "mcp-session-id": str(self._session)})
        return self._connection.getresponse()

    def abandon(self) -> None:
        """Be gone, with whatever is open."""
        self._connection.close()


def abandon_session(gateway: Gateway, number: int) -> None:
    """A host comes, does something, and is gone: every fourth over HTTP+SSE, every fourth with its stream open."""
    if number % 4 == 3:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        connection.request("GET", "/sse", headers={"accept": "text/event-stream"})
        connection.getresponse().readline()  # the stream is open: the endpoint is being named
        connection.close()
        return
    host = Host(gateway.port)
    host.ask("tools/list", {})
    if number % 4 == 2:
        stream = host.open_stream()
        host.abandon()
        stream.close()
    host.abandon()


def kill_upstream(gateway: Gateway, host: Host, label: str, *, in_call: bool) -> None:
    """Kill one upstream, and have the gateway start it again by calling it. Raises AssertionError if it does not."""
    if in_call:
        answer = host.call(f"{label}__die", signal=int(signal.SIGKILL))
        if "SIGKILL" not in json.dumps(answer):
            raise AssertionError(f"a call that was cut off was answered with {answer}")
    else:
        # Its memory of the one before may be fresher than the system's: whoever answers is the one.
        pid = host.call(f"{label}__pid")["structuredContent"]["pid"]
        os.kill(pid, signal.SIGKILL)
    answer = None
    for _ in range(20):
        answer = host.call(f"{label}__pid")
        if answer.get("structuredContent"):
            return
    raise AssertionError(f"{label} did not come back: {answer}")


def call_what_never_answers(host: Host) -> None:
    """A call that the gateway has to give up."""
    answer = host.call("a__hang")
    if not answer.get("isError"):
        raise AssertionError(f"a call that is never answered was answered with {answer}")


def write_config(folder: Path) -> Path:
    """Six upstreams; a short memory for sessions, and short patience for the tool that hangs."""
    lines = ["[http]", f"session_idle = {SESSION_IDLE_SECONDS}", "[profiles.raw]", 'extends = "passthrough"']
    lines += ['sets = { "wait.tools_list" = 0.5 }', "[gateway]", 'profile = "raw"']
    for label, flags, more in (
        *((label, (), ["limits = { restarts = 0 }", "tools.timeout.hang = { call = 0.1 }"]) for label in KILLED),
        ("mute", ("silent",), ["timeout = { start = 86400 }"]),
        ("flood", ("flood",), []),
    ):
        arguments = [str(RAW_STDIO), *flags, f"label-{label}"]
        lines += [f"[upstreams.{label}]", f"command = {json.dumps(sys.executable)}", f"args = {json.dumps(arguments)}"]
        lines += more
    config = folder / "mcp-gateway.toml"
    config.write_text("\n".join(lines) + "\n", "utf-8")
    return config


@contextmanager
def running_gateway(folder: Path) -> Generator[Gateway]:
    """A gateway on a free port, ended in good order; AssertionError if it leaves anything behind."""
    command = [sys.executable, "-m", "gateway", "serve", "--http", "--port", "0", "--config", str(write_config(folder))]
    environ = {**os.environ, "MCP_GATEWAY_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environ, cwd=folder
    ) as process:
        assert process.stderr is not None
        try:
            said: list[str] = []
            for line in process.stderr:
                said.append(line)
                if found := re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line):
                    break
            else:
                raise AssertionError(f"the gateway did not start: {''.join(said)}")
            threading.Thread(target=process.stderr.read, daemon=True).start()
            gateway = Gateway(process, int(found[1]))
            yield gateway
            left = gateway.descendants()
            process.terminate()
            process.wait(15)
            survivors = {pid: line for pid, line in left.items() if _command_line(pid) == line}
            if survivors:
                raise AssertionError(f"left behind: {survivors}")
        finally:
            process.kill()


def settle(gateway: Gateway, start: Size) -> Size:
    """What the gateway has, once it is back at `start`, or after a while."""
    end = time.monotonic() + RETURN_SECONDS
    while not (size := gateway.size()).is_back_at(start) and time.monotonic() < end:
        time.sleep(0.2)
    return size


def steady(gateway: Gateway) -> Size:
    """What it has when it has all its upstreams, and nothing more that comes and goes."""
    time.sleep(SESSION_IDLE_SECONDS + 1)
    sizes = [gateway.size()]
    for _ in range(60):
        time.sleep(0.5)
        sizes.append(gateway.size())
        if len({size[:3] for size in sizes[-5:]}) == 1 and len(sizes) > 5:
            break
    return Size(*(max(column) for column in zip(*sizes[-5:], strict=True)))


def abandon_sessions(gateway: Gateway, count: int) -> None:
    """Hosts that come and go, eight at a time."""
    with ThreadPoolExecutor(8) as hosts:
        list(hosts.map(partial(abandon_session, gateway), range(count)))


def kill_upstreams(gateway: Gateway, count: int, *, in_call: bool) -> None:
    """Kill the upstreams beside one another, each again and again."""

    def kill_one(label: str) -> None:
        for _ in range(count // len(KILLED)):
            host = Host(gateway.port)  # a session that nobody uses for a while is forgotten here
            kill_upstream(gateway, host, label, in_call=in_call)
            host.abandon()

    with ThreadPoolExecutor(len(KILLED)) as killers:
        list(killers.map(kill_one, KILLED))


def call_in_vain(gateway: Gateway, count: int) -> None:
    """Calls that are never answered, one after the other."""
    host = Host(gateway.port)
    for _ in range(count):
        call_what_never_answers(host)
    host.abandon()


def run(sessions: int, kills: int, hangs: int = 50) -> tuple[Size, list[Row]]:
    """All trials; what it was at the start, and after each."""
    half = kills // 2
    trials: Sequence[tuple[str, Callable[[Gateway], None]]] = (
        (f"{sessions} sessions abandoned", partial(abandon_sessions, count=sessions)),
        (f"{half} upstreams killed in a call", partial(kill_upstreams, count=half, in_call=True)),
        (f"{kills - half} upstreams killed while idle", partial(kill_upstreams, count=kills - half, in_call=False)),
        (f"{hangs} calls that are never answered", partial(call_in_vain, count=hangs)),
    )
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, running_gateway(Path(folder)) as gateway:
        abandon_sessions(gateway, max(16, sessions // 10))
        kill_upstreams(gateway, len(KILLED), in_call=True)
        call_in_vain(gateway, 5)
        start = steady(gateway)
        for name, trial in trials:
            began = time.monotonic()
            trial(gateway)
            took = time.monotonic() - began
            rows.append(Row(name, took, settle(gateway, start)))
    return start, rows


def table(start: Size, rows: Sequence[Row]) -> str:
    """The figures, a line for each trial."""
    heads = ("", "seconds", "processes", "files", "threads", "memory MB", "")
    lines = [heads, ("at the start", "", *_figures(start), "")]
    for row in rows:
        verdict = "back" if row.size.is_back_at(start) else "NOT BACK"
        lines.append((row.trial, f"{row.seconds:.1f}", *_figures(row.size), verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) if place == 0 else cell.rjust(width) for place, (cell, width) in cells).rstrip()
        for line in lines
        for cells in [list(enumerate(zip(line, widths, strict=True)))]
    )


def _figures(size: Size) -> tuple[str, ...]:
    return (*(str(count) for count in size[:3]), f"{size.rss / 1024 / 1024:.1f}")


def main() -> int:
    """Run the trials and print the figures."""
    parser = argparse.ArgumentParser(description="Whether the gateway returns to where it was.")
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--kills", type=int, default=500)
    options = parser.parse_args()
    if sys.platform != "linux":
        print("the soak reads /proc, which only Linux has")
        return 2
    start, rows = run(options.sessions, options.kills)
    print(table(start, rows))
    print(f"memory may differ by {RSS_MARGIN / 1024 / 1024:.0f} MB; nothing else may")
    return 0 if all(row.size.is_back_at(start) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

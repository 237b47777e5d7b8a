"""Gateways as processes: started, waited for, weighed and ended."""

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.calls.driver import Client, HttpClient, NotAnswered, StdioClient
from benchmarks.calls.gateways import ROOT, Gateway, Place, Setting, environ, upstream_command

STARTS_WITHIN: Final = 60.0
UPSTREAM: Final = "benchmarks.calls.upstream"


@dataclass(frozen=True)
class Running:
    """A gateway that answers. Nothing is known of a process where there is none."""

    client: Client
    pid: int | None
    port: int
    opened: float
    """Seconds from its start until its port was open; not a number over stdio."""


def free_port() -> int:
    """One that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


@asynccontextmanager
async def raw_upstream(folder: Path) -> AsyncGenerator[int]:
    """The raw upstream over HTTP, for everything of a run; its port."""
    port = free_port()
    async with _process(upstream_command("http", str(port)), folder, "upstream"):
        await _port_open(port)
        yield port


@asynccontextmanager
async def running(gateway: Gateway, setting: Setting, upstream_port: int, folder: Path) -> AsyncGenerator[Running]:
    """A gateway, and a host in front of it that knows its tools. Raises NotAnswered if it does not come up."""
    place = Place(setting, free_port(), upstream_port, folder)
    command = _command(gateway, place)
    if command is None:
        client: Client = HttpClient(setting.era, upstream_port, f"/{setting.era}/{setting.tools}")
        async with _open(client):
            yield Running(client, None, upstream_port, float("nan"))
    elif setting.front == "stdio":
        client = StdioClient(setting.era, command, environ(folder), folder / f"{gateway.name}.log")
        pid = await client.start()
        async with _open(client):
            yield Running(client, pid, 0, float("nan"))
    else:
        began = time.perf_counter()
        async with _process(command, folder, gateway.name) as process:
            await _port_open(place.port, process)
            opened = time.perf_counter() - began
            client = HttpClient(setting.era, place.port, "/mcp")
            async with _open(client):
                yield Running(client, process.pid, place.port, opened)


def _command(gateway: Gateway, place: Place) -> list[str] | None:
    """None: the upstream that runs already is asked itself."""
    if gateway.command is not None:
        return gateway.command(place)
    if place.setting.front == "http":
        return None
    return upstream_command("stdio", place.setting.era, str(place.setting.tools))


@asynccontextmanager
async def _open(client: Client) -> AsyncGenerator[None]:
    """A gateway may serve before its upstream is there: it is asked again until it has the tools."""
    try:
        end = time.monotonic() + STARTS_WITHIN
        while True:
            try:
                await client.open()
                client.name_of("text")
                break
            except (NotAnswered, OSError) as error:
                if time.monotonic() > end:
                    raise NotAnswered(f"no tools: {error}") from error
                await asyncio.sleep(0.1)
        yield
    finally:
        await client.close()


@asynccontextmanager
async def _process(command: list[str], folder: Path, name: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    with (folder / f"{name}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=environ(folder), cwd=ROOT
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(5):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _port_open(port: int, process: asyncio.subprocess.Process | None = None) -> None:
    """Until somebody listens. Raises NotAnswered if the process ends, or takes too long."""
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end and (process is None or process.returncode is None):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.005)
        else:
            writer.close()
            return
    raise NotAnswered("it did not start")


# What follows reads /proc.


def memory(pid: int, field: str = "VmRSS") -> int:
    """Bytes of a gateway, with its workers and without the upstream that it started. `VmHWM` is the peak."""
    return sum(_status(each, field) for each in family(pid))


@contextmanager
def peak(pid: int) -> Generator[list[int]]:
    """Begin the peak again; afterwards, the list has it."""
    found: list[int] = []
    for each in family(pid):
        with suppress(OSError):
            Path(f"/proc/{each}/clear_refs").write_text("5")
    yield found
    found.append(memory(pid, "VmHWM"))


def family(pid: int) -> Iterator[int]:
    """Yield the ids of a gateway and of its workers, without the upstream that it started."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        children = Path(f"/proc/{pid}/task").glob("*/children")
        below = [int(child) for path in children for child in path.read_text().split()]
    except OSError:
        return
    # A gateway's own command line names the upstream too, but further on.
    if UPSTREAM.encode() in words[1:3]:
        return
    yield pid
    for child in below:
        yield from family(child)


def _status(pid: int, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:")), 0)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

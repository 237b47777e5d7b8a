"""The use of a gateway's process and of its media workers, and its own numbers, while something runs."""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.calls.driver import Address
from benchmarks.calls.processes import cores, family, memory
from benchmarks.load.measured import Use

_PERIOD = 0.2
_SAMPLE = re.compile(r"^(mcp_gateway_\w+)(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


class Cpu(NamedTuple):
    """CPU seconds so far: of the gateway's own process, and of its media workers."""

    own: float
    media: float


def cpu_of(pid: int) -> Cpu:
    """Return the CPU seconds of a gateway, with workers that have ended."""
    process = psutil.Process(pid)
    times = process.cpu_times()
    media = times.children_user + times.children_system
    for child in family(pid):
        if child != pid:
            with suppress(psutil.Error):
                used = psutil.Process(child).cpu_times()
                media += used.user + used.system
    return Cpu(times.user + times.system, media)


class Machine(NamedTuple):
    """CPU seconds of this machine so far: of everything, and of this run with all that it has started; and the time."""

    busy: float
    ours: float
    at: float

    @classmethod
    def now(cls) -> "Machine":
        """Look at the machine."""
        every, own = psutil.cpu_times(), os.times()
        ours = own.user + own.system + own.children_user + own.children_system
        for child in _descendants(os.getpid()):
            with suppress(psutil.Error):
                used = psutil.Process(child).cpu_times()
                ours += used.user + used.system + used.children_user + used.children_system
        return cls(sum(every) - every.idle - getattr(every, "iowait", 0.0), ours, time.monotonic())

    def others_since(self, before: "Machine") -> float:
        """Return the part of the cores (0 to 1) that other programs have used since `before`."""
        others = (self.busy - before.busy) - (self.ours - before.ours)
        return max(0.0, min(1.0, others / ((self.at - before.at) * cores())))


def _descendants(pid: int) -> Iterator[int]:
    try:
        paths = Path(f"/proc/{pid}/task").glob("*/children")
        below = [int(child) for path in paths for child in path.read_text().split()]
    except OSError:
        return
    for child in below:
        yield child
        yield from _descendants(child)


async def metrics(at: Address) -> dict[str, float]:
    """Return the gateway's metrics, those with labels added up; none if it does not say."""
    with suppress(OSError):
        reader, writer = await asyncio.open_connection(at.name, at.port, ssl=at.tls)
        head = "\r\n".join(
            ["GET /metrics HTTP/1.1", f"host: {at.name}:{at.port}", "connection: close", *at.headers, "", ""]
        )
        writer.write(head.encode())
        text = (await reader.read()).decode("utf-8", "replace")
        writer.close()
        found = dict[str, float]()
        for name, value in _SAMPLE.findall(text):
            found[name] = found.get(name, 0.0) + float(value)
        return found
    return {}


@dataclass
class _Watched:
    cpu: Cpu
    peak: int = 0
    most: dict[str, float] = field(default_factory=dict[str, float])


@asynccontextmanager
async def watching(pid: int, at: Address) -> AsyncGenerator[list[Use]]:
    """Watch a gateway inside the context; afterwards, the list has what it used."""
    found = list[Use]()
    seen = _Watched(cpu_of(pid))

    async def look() -> None:
        while True:
            seen.peak = max(seen.peak, memory(pid))
            for name, value in (await metrics(at)).items():
                seen.most[name] = max(value, seen.most.get(name, 0.0))
            await asyncio.sleep(_PERIOD)

    task = asyncio.create_task(look())
    try:
        yield found
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        after = cpu_of(pid)
        most = [int(seen.most.get(f"mcp_gateway_{name}", 0)) for name in _MOST]
        found.append(Use(after.own - seen.cpu.own, after.media - seen.cpu.media, seen.peak, *most))


_MOST = ("requests_running", "requests_waiting", "media_jobs_waiting")

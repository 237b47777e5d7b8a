"""What the console costs: its pages with 1,000 tools and 10,000 calls kept, and calls while it is off or open.

    .venv/bin/python -m benchmarks.console [--rounds 7] [--write]

Pages are asked for over ASGI, in this process. Calls go through the router of a gateway to a server on stdio; the
gateways take turns, round after round, and each ratio is one of the same round, to the gateway without a console.
`--write` puts the figures into docs/performance.md.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from starlette.applications import Starlette

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import size_of
from gateway.runtime import Gateway, run_gateway
from gateway.serving.console.call_file import Bounds, CallFile, EndedCall
from gateway.serving.console.console import Console, open_console
from gateway.serving.console.routes import console_mounts
from gateway.system.background_tasks import background_tasks
from gateway.telemetry.call_history import CallHistory
from gateway.telemetry.calls import CallRecord

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / "tests" / "servers" / "scripted_stdio.py"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- console:begin (written by make bench) -->\n", "<!-- console:end -->\n"
HOST = Caller(revision="2025-11-25", client_name="claude-code", session="benchmark")
TOOLS, CALLS, CALLS_A_ROUND = 1_000, 10_000, 200
PAGES = {
    "Home": "/",
    "Calls": "/calls",
    "Calls, nothing found among all": "/calls?text=nowhere",
    "a call": f"/calls/{CALLS}",
    "Try, first page of the tools": "/try",
    "a tool’s form": "/try/tools/up__tool1",
    "Hosts, with all profiles": "/hosts",
    "editing a profile": "/edit/claude-code",
    "Servers": "/servers",
    "a server and its tools": "/servers/up",
}
RESULT = {"content": [{"type": "text", "text": "x" * 200}]}


async def report() -> dict[str, Any]:
    """The status that the pages show."""
    upstream: dict[str, Any] = {
        "name": "up",
        "state": "ready",
        "cause": None,
        "since": "2026-11-23T00:00:00Z",
        "transport": "stdio",
        "tools": TOOLS,
        "withheld": [],
        "left_out": [],
        "logins": [],
        "calls": {"total": CALLS, "failed": 0, "running": 0},
        "restarts": 0,
    }
    return {
        "upstreams": [upstream],
        "hosts": [],
        "approvals": 0,
        "memory_bytes": 1,
        "store": {"bytes": 0},
        "config": None,
        "configuration": {"problem": None},
    }


def server(folder: Path, tools: int) -> dict[str, Any]:
    """The settings of a server with many tools."""
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in ("query", "page", "order")}}
    script = {
        "tools": [{"name": f"tool{n}", "description": "does things " * 8, "inputSchema": schema} for n in range(tools)],
        "results": {f"tool{n}": RESULT for n in range(tools)},
    }
    path = folder / f"{tools}.json"
    path.write_text(json.dumps(script))
    return {"command": sys.executable, "args": [str(SERVER), str(path)]}


@asynccontextmanager
async def gateway_with(folder: Path, tools: int, **console: Any) -> AsyncGenerator[Gateway]:
    """A gateway in this process, whose server has started."""
    settings = Settings.model_validate({"upstreams": {"up": server(folder, tools)}, "console": console})
    async with run_gateway(settings) as gateway:
        await gateway.upstreams["up"].ready(60.0)
        yield gateway


def fill(history: CallHistory) -> list[EndedCall]:
    """Have a history of 10,000 calls, as they are written to a file."""
    ended: list[EndedCall] = []
    for number in range(CALLS):
        record = CallRecord(HOST, "claude-code", f"up__tool{number % TOOLS}")
        call = history.begin(record, HOST)
        record.asked({"query": str(number)}, size_of({"query": str(number)}))
        record.routed("up", f"tool{number % TOOLS}")
        record.answered(RESULT, size_of(RESULT))
        history.end(call)
        ended.append(EndedCall(call, call.arguments, call.result))
    return ended


async def asked(console: Console, path: str, rounds: int) -> float:
    """The median of the milliseconds that a page takes, after a first time."""
    app = Starlette(routes=console_mounts("/console", console))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as browser:
        await browser.get(f"/console/enter?key={console.sessions.new_key()}")
        taken: list[float] = []
        for _ in range(rounds + 1):
            began = time.perf_counter()
            answer = await browser.get(f"/console{path}")
            taken.append(1_000 * (time.perf_counter() - began))
            assert answer.status_code == 200, (path, answer.text[:500])
    return statistics.median(taken[1:])


async def pages(folder: Path, rounds: int) -> dict[str, float]:
    """Milliseconds for each page, and for opening the file of past calls."""
    taken: dict[str, float] = {}
    async with gateway_with(folder, TOOLS) as gateway, background_tasks() as tasks:
        console = await open_console(gateway, report, tasks)
        ended = fill(console.history)
        for name, path in PAGES.items():
            taken[name] = await asked(console, path, rounds)
    bounds = Bounds(CALLS, 64 * 1024 * 1024, 86_400.0)
    file = CallFile(folder / "calls.sqlite3", bounds)
    file.write(ended)
    file.close()
    began = time.perf_counter()
    file = CallFile(folder / "calls.sqlite3", bounds)
    CallHistory(CALLS, 1).restore(file.calls())
    taken["start with a file of past calls"] = 1_000 * (time.perf_counter() - began)
    began = time.perf_counter()
    file.read(CALLS // 2)
    taken["arguments and result of one of them"] = 1_000 * (time.perf_counter() - began)
    file.close()
    return taken


async def one_round(gateway: Gateway) -> float:
    """Seconds for some calls, one after another."""
    params = {"name": "up__tool1", "arguments": {"query": "x"}}
    began = time.perf_counter()
    for _ in range(CALLS_A_ROUND):
        await gateway.router.respond("tools/call", params, HOST)
    return time.perf_counter() - began


async def ratios(folder: Path, rounds: int) -> dict[str, list[float]]:
    """The time of calls in each way, by that of the gateway without a console in the same round."""
    async with AsyncExitStack() as stack:
        ways = {
            "off": {},
            "off, once more": {},
            "open": {},
            "open and watched": {},
            "open, with a file": {"calls": "f"},
        }
        gateways: dict[str, Gateway] = {}
        for name, console in ways.items():
            if console:
                console = {"calls": str(folder / "watched.sqlite3")}
            gateway = gateways[name] = await stack.enter_async_context(gateway_with(folder, 10, **console))
            if name.startswith("open"):
                tasks = await stack.enter_async_context(background_tasks())
                opened = await open_console(gateway, report, tasks)
                if name.endswith("watched"):
                    stack.callback(opened.history.listen(lambda _: None))
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds + 1):
            for name, gateway in gateways.items():
                taken[name].append(await one_round(gateway))
    off = taken.pop("off")
    return {name: [one / base for one, base in zip(each, off, strict=True)][1:] for name, each in taken.items()}


def table(taken: dict[str, float], found: dict[str, list[float]]) -> str:
    """The figures in Markdown."""
    lines = [f"| with {TOOLS:,} tools and {CALLS:,} calls kept | milliseconds |", "|---|---|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in taken.items()]
    lines += ["", "| calls while the console is ... | by the time with it off |", "|---|---|"]
    for name, values in found.items():
        lines.append(f"| {name} | **{statistics.median(values):.2f}** ({min(values):.2f}–{max(values):.2f}) |")
    return "\n".join(lines) + "\n"


def write(figures: str) -> None:
    """Replace the figures in the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{figures}{END}{after}", "utf-8")


async def main(rounds: int) -> str:
    """Measure, and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        return table(await pages(Path(folder), rounds), await ratios(Path(folder), rounds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    figures = anyio.run(main, options.rounds)
    print(figures)
    if options.write:
        write(figures)

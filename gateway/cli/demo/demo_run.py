"""Run the demo: start processes, make every call directly and through the gateway, simulate every host, stop all."""

import json
import signal
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
from mcp.shared.exceptions import MCPError
from rich.console import Console

from gateway.cli.demo.cases import CASES, Case
from gateway.cli.demo.clients import DemoConnection, Sse, Stdio, StreamableHttp, Target, connected
from gateway.cli.demo.demo_files import DemoFiles, demo_setting
from gateway.cli.demo.outcome import Cell, Outcome
from gateway.cli.demo.page import write_page
from gateway.cli.demo.processes import CannotStart, http_process, last_stderr_lines
from gateway.cli.demo.table import print_costs, print_table
from gateway.cli.demo.token_costs import costs_json
from gateway.core.model.revisions import NEWEST_MODERN
from gateway.errors import GatewayError
from gateway.hosts.simulators.host import SimulatedHost
from gateway.hosts.simulators.hosts import FIRST
from gateway.hosts.simulators.side import Side, side

TOTAL_SECONDS = 600.0
LISTING_SECONDS = 30.0
"""Time for the gateway to offer the tools of every upstream."""
AT_ONCE = 2
"""Maximum number of hosts connected at the same time, because each starts processes of its own."""
OVER_HTTP = {"claude-code": "/mcp", "inspector": "/mcp", "unknown": "/sse"}
"""The hosts that use the gateway over HTTP, and the paths; the others start it over stdio."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoAnswer:
    """The outcome of a call: the result and the tool as listed, or the reason why there is none."""

    result: Mapping[str, Any] | None
    tool: Mapping[str, Any] | None
    failure: str | None = None


Answers = dict[tuple[str, str], DemoAnswer]
"""Answers by case, and by revision (directly) or host (through the gateway)."""


def run_demo(report: Path, *, json_output: bool) -> int:
    """See `gateway.cli.demo.demo_run`."""
    stderr = Console(stderr=True, highlight=False)

    def say(line: str) -> None:
        stderr.print(line, style="dim", markup=False, soft_wrap=True)

    try:
        with _ended_in_order():
            outcome = anyio.run(_demo, say)
    except KeyboardInterrupt:
        return 130
    except TimeoutError:
        stderr.print(f"demo: took longer than {TOTAL_SECONDS:.0f} seconds", style="red")
        return 1
    except (GatewayError, CannotStart) as error:
        stderr.print(f"demo: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    write_page(report, outcome)
    if json_output:
        written = {**outcome.to_json(), "tokens": costs_json(outcome), "report": str(report)}
        sys.stdout.write(json.dumps(written, ensure_ascii=False) + "\n")
    else:
        print_table(outcome)
        print_costs(outcome)
    for problem, where in _problems(outcome).items():
        stderr.print(f"{', '.join(where)}: {problem}", style="red", markup=False, soft_wrap=True)
    stderr.print(f"report: {report}", markup=False, soft_wrap=True)
    return 0 if outcome.is_good else 1


@contextmanager
def _ended_in_order() -> Generator[None]:
    """Treat signals that would end this process at once like Ctrl-C, so that no process of the demo outlives it."""
    fatal = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {one: signal.signal(one, lambda _signal, _frame: signal.raise_signal(signal.SIGINT)) for one in fatal}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _problems(outcome: Outcome) -> dict[str, list[str]]:
    """The problems found through the gateway, without duplicates, each with its places."""
    problems: dict[str, list[str]] = {}
    for cell in outcome.cells:
        for problem in cell.through.problems:
            problems.setdefault(problem, []).append(f"{cell.host.name} ({cell.case.name})")
    return problems


async def _demo(say: Say) -> Outcome:
    started = time.monotonic()
    hosts = FIRST
    with anyio.fail_after(TOTAL_SECONDS):
        async with AsyncExitStack() as stack:
            setting = stack.enter_context(demo_setting())
            say("starting the example servers: charts (stdio), documents (Streamable HTTP), sounds (SSE)")
            for name, port in (("documents", setting.documents_port), ("sounds", setting.sounds_port)):
                await stack.enter_async_context(_example(setting, name, port))
            direct = await _directly(setting, hosts, say)
            say("starting the gateway with the shipped mcp-gateway.toml")
            await stack.enter_async_context(_gateway(setting))
            through = await _through(setting, hosts, say)
        say("simulating the hosts")
        cells = await _cells(hosts, direct, through)
    return Outcome(hosts, CASES, cells, time.monotonic() - started)


def _example(setting: DemoFiles, name: str, port: int) -> Any:
    command = setting.example_command(name, "--port", str(port))
    return http_process(name, command, port=port, variables=setting.variables(), folder=setting.folder)


def _gateway(setting: DemoFiles) -> Any:
    command = setting.serve_command("--http", "--port", str(setting.gateway_port))
    return http_process(
        "the gateway", command, port=setting.gateway_port, variables=setting.variables(), folder=setting.folder
    )


async def _directly(setting: DemoFiles, hosts: Sequence[SimulatedHost], say: Say) -> Answers:
    """Call every case directly at its upstream, once in each revision that a host speaks."""
    by_revision = {host.revision: host for host in hosts}
    # The newest revision leaves nothing out, so it shows what a tool really returns.
    by_revision.setdefault(NEWEST_MODERN, replace(hosts[0], revision=NEWEST_MODERN))
    targets: dict[str, Target] = {
        "documents": StreamableHttp(setting.documents_url),
        "sounds": Sse(setting.sounds_url),
    }
    answers: Answers = {}

    async def ask(upstream: str, revision: str) -> None:
        cases = [case for case in CASES if case.upstream == upstream]
        names = {case.name: case.tool for case in cases}
        async with _upstream_target(setting, targets, upstream) as target:
            say(f"directly: {upstream}, {revision}")
            answers.update(await _ask_all(target, by_revision[revision], cases, names, revision))

    await _limited([lambda u=u, r=r: ask(u, r) for u in ("charts", "documents", "sounds") for r in by_revision])
    return answers


@asynccontextmanager
async def _upstream_target(setting: DemoFiles, targets: Mapping[str, Target], upstream: str) -> AsyncGenerator[Target]:
    if upstream in targets:
        yield targets[upstream]
        return
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        yield Stdio(setting.example_command(upstream), setting.variables(), setting.folder, errors)


async def _through(setting: DemoFiles, hosts: Sequence[SimulatedHost], say: Say) -> Answers:
    """Call every case through the gateway, as each host."""
    answers: Answers = {}
    names = {case.name: f"{case.upstream}__{case.tool}" for case in CASES}

    async def ask(host: SimulatedHost) -> None:
        async with _gateway_target(setting, host) as target:
            say(f"through the gateway: {host.title}, over {_transport_words(target)}, {host.revision}")
            answers.update(await _ask_all(target, host, CASES, names, host.name))

    await _limited([lambda host=host: ask(host) for host in hosts])
    return answers


@asynccontextmanager
async def _gateway_target(setting: DemoFiles, host: SimulatedHost) -> AsyncGenerator[Target]:
    if path := OVER_HTTP.get(host.name):
        url = f"http://127.0.0.1:{setting.gateway_port}{path}"
        yield Sse(url, setting.token) if path == "/sse" else StreamableHttp(url, setting.token)
        return
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        yield Stdio(setting.serve_command(), setting.variables(), setting.folder, errors)


async def _ask_all(
    target: Target, host: SimulatedHost, cases: Sequence[Case], names: Mapping[str, str], key: str
) -> Answers:
    """Make the calls of all cases over one connection. If the connection fails, that is the answer to each."""
    answers: Answers = {}
    try:
        async with connected(target, host) as connection:
            tools = await _listed(connection, set(names.values()))
            for case in cases:
                answers[case.name, key] = await _ask(connection, names[case.name], case, tools, _written(target))
    except (MCPError, OSError, httpx2.HTTPError, ExceptionGroup) as error:
        failure = f"{_cause(error)}{_written(target)}"
        for case in cases:
            answers.setdefault((case.name, key), DemoAnswer(None, None, failure))
    return answers


async def _listed(connection: DemoConnection, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Wait until all wanted tools are offered or the time is up, and return the offered tools."""
    tools: dict[str, dict[str, Any]] = {}
    with anyio.move_on_after(LISTING_SECONDS):
        while True:
            tools = await connection.tools()
            if wanted <= tools.keys():
                break
            await anyio.sleep(0.3)
    return tools


async def _ask(
    connection: DemoConnection, name: str, case: Case, tools: Mapping[str, Mapping[str, Any]], written: str
) -> DemoAnswer:
    if name not in tools:
        return DemoAnswer(None, None, f"no tool {name} is offered{written}")
    try:
        return DemoAnswer(await connection.call(name, case.arguments), tools[name])
    except MCPError as error:
        return DemoAnswer(None, tools[name], f"{name}: {error}")


async def _cells(hosts: Sequence[SimulatedHost], direct: Answers, through: Answers) -> tuple[Cell, ...]:
    return tuple(
        [
            Cell(
                host,
                case,
                await _side(direct[case.name, NEWEST_MODERN].result, direct[case.name, host.revision], host),
                await _side(direct[case.name, NEWEST_MODERN].result, through[case.name, host.name], host),
            )
            for case in CASES
            for host in hosts
        ]
    )


async def _side(original: Mapping[str, Any] | None, answer: DemoAnswer, host: SimulatedHost) -> Side:
    if answer.result is None:
        return Side(None, None, answer.failure)
    if original is None:
        return Side(None, None, "the upstream itself gave no result to compare with")
    # Decoding pictures takes a while, so it is done in a thread, so that Ctrl-C still works.
    return await anyio.to_thread.run_sync(side, original, answer.result, answer.tool, host)


async def _limited(jobs: Sequence[Callable[[], Any]]) -> None:
    """Run all jobs, a few at a time."""
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(job: Callable[[], Any]) -> None:
        async with limiter:
            await job()

    async with anyio.create_task_group() as tasks:
        for job in jobs:
            tasks.start_soon(one, job)


def _written(target: Target) -> str:
    """Return the server's stderr so far, to be shown below a failure."""
    text = last_stderr_lines(target.errors) if isinstance(target, Stdio) else ""
    return f"\n{text}" if text else ""


def _transport_words(target: Target) -> str:
    return {Stdio: "stdio", StreamableHttp: "Streamable HTTP", Sse: "SSE"}[type(target)]


def _cause(error: Exception) -> str:
    """Return the first error inside any number of nested groups."""
    if isinstance(error, ExceptionGroup):
        return _cause(cast("ExceptionGroup[Exception]", error).exceptions[0])
    return str(error) if isinstance(error, MCPError) else f"{type(error).__name__}: {error}"

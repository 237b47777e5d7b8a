"""One run: every part of it interleaved, so that a busy moment of the machine hits all alike."""

import asyncio
import dataclasses
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.calls.cases import (
    CASES,
    FIRST_ANSWER,
    IDLE,
    IMPORTING,
    LIST,
    LOOP,
    LOOP_AWAY,
    LOOP_BLOCKED,
    LOOP_COMPUTING,
    MEMORY,
    PER_CALL,
    PER_UPSTREAM,
    PORT_OPEN,
    START,
    TEXT,
    Case,
    check,
    one_call,
    seconds_per_call,
)
from benchmarks.calls.driver import HttpClient, NotAnswered
from benchmarks.calls.figures import Figures, Reference, in_turn
from benchmarks.calls.gateways import (
    CONNECTED,
    DIRECT,
    FLOOR,
    GATEWAYS,
    MCP_PROXY,
    NAIVE,
    PASSTHROUGH,
    Gateway,
    Place,
    Setting,
    left_out,
    many_upstreams,
    watched,
)
from benchmarks.calls.goals import HTTP, TO_STDIO
from benchmarks.calls.processes import Running, memory, peak, raw_upstream, running
from benchmarks.calls.wire import Era, result_bytes
from benchmarks.first_answer import DISCOVER, first_answer, importing, write_config

QUICK_SETTINGS: Final = (
    TO_STDIO,
    Setting("stdio", "http", Era.HANDSHAKE),
    Setting("stdio", "stdio", Era.STATELESS),
)
QUICK_WAYS: Final = (NAIVE, PASSTHROUGH, MCP_PROXY)
SETTINGS: Final = tuple(Setting(*each) for each in product(("http", "stdio"), ("http", "stdio"), Era))
BEGAN: Final = time.perf_counter()
IN_FLIGHT: Final = 4
UPSTREAMS: Final = 20
LOOP_CALLS: Final = 3
BUDGET: Final = 6.0
"""Seconds for all rounds of one case on one way. Who starts a process for every call would take hours else."""
EIGHT_MEGABYTES: Final = next(case for case in CASES if case.tool == "image_8m")
PHOTO: Final = Case("photo", "photo")


@dataclass(frozen=True)
class Options:
    """How much is measured. Empty names are all."""

    rounds: int = 5
    window: float = 0.15
    """Seconds for each number."""
    quick: bool = False
    ways: Sequence[str] = ()
    cases: Sequence[str] = ()
    settings: Sequence[str] = ()
    parts: Sequence[str] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out on purpose, so that the page may be written."""
        return not (self.ways or self.cases or self.settings or self.parts)


@dataclass
class Run:
    """What a run has, and what it has found."""

    options: Options
    upstream_port: int
    folder: Path
    figures: Figures = field(default_factory=Figures)
    missing: dict[str, str] = field(default_factory=dict[str, str])
    """Gateways that were left out, with the reason."""

    def add(self, setting: object, case: str, way: str, number: int, value: float) -> None:
        """Add a number."""
        self.figures.add(Reference(str(setting), case, way), number, value)

    def gateways(self, *names: str) -> list[Gateway]:
        """Those of these names (none: all) that are wanted and can be measured."""
        found: list[Gateway] = []
        for gateway in GATEWAYS:
            if (names and gateway.name not in names) or not _wanted(gateway.name, self.options.ways):
                continue
            if reason := left_out(gateway):
                self.missing[gateway.name] = reason
            else:
                found.append(gateway)
        return found

    @contextmanager
    def leaving_out(self, what: str) -> Generator[None]:
        """What fails inside is left out, with the reason, so that a whole run is not lost for one answer."""
        try:
            yield
        except (NotAnswered, OSError, TimeoutError) as error:
            self.missing[what] = f"{type(error).__name__}: {error}"
            say(f"left out: {what}: {self.missing[what]}")

    def fits(self, gateway: Gateway, setting: Setting) -> bool:
        """Whether the gateway can stand there."""
        return gateway.command is None or gateway.command(Place(setting, 0, 0, self.folder)) is not None


def _wanted(name: str, wanted: Sequence[str]) -> bool:
    return not wanted or any(each in name for each in wanted)


async def run(options: Options, folder: Path) -> Run:
    """All parts that are wanted."""
    async with raw_upstream(folder) as port:
        done = Run(options, port, folder)
        for name, part in PARTS.items():
            if _wanted(name, options.parts):
                say(f"{name} ...")
                began = time.perf_counter()
                with done.leaving_out(name):
                    await part(done)
                say(f"{name}: {time.perf_counter() - began:.0f} s")
    return done


def say(text: str) -> None:
    """Progress, beside the output."""
    print(f"{time.perf_counter() - BEGAN:5.0f} s  {text}", file=sys.stderr, flush=True)


# Calls: every gateway in every setting.


async def calls(run: Run) -> None:
    """Each case on each way, for each pair of transports and each era.

    A quick run does all of that in one setting only; in three others, a small call and a large one on a few ways.
    """
    for setting in SETTINGS:
        brief = run.options.quick and setting != HTTP
        if not _wanted(str(setting), run.options.settings) or (brief and setting not in QUICK_SETTINGS):
            continue
        cases = [case for case in CASES if _wanted(case.name, run.options.cases)]
        if run.options.quick:
            cases = [case for case in cases if case.at_once < 64 and (not brief or case.name in (TEXT, "8 MB"))]
        await _calls_in(run, setting, cases, run.gateways(*(QUICK_WAYS if brief else ())))


async def _calls_in(run: Run, setting: Setting, cases: Sequence[Case], gateways: Sequence[Gateway]) -> None:
    """Rounds over all the gateways, which stand side by side."""
    async with AsyncExitStack() as stack:
        standing: dict[str, Running] = {}
        for gateway in gateways:
            if run.fits(gateway, setting):
                with run.leaving_out(f"{gateway.name}, {setting}"):
                    standing[gateway.name] = await stack.enter_async_context(
                        running(gateway, setting, run.upstream_port, run.folder)
                    )
        for case in cases:
            say(f"{setting}: {case.name}")
            right: list[str] = []
            for way, each in standing.items():
                with run.leaving_out(f"{way}, {setting}, {case.name}"):
                    await check(each.client, case)
                    right.append(way)
            left = dict.fromkeys(right, BUDGET)
            for number in range(run.options.rounds):
                for way in in_turn([way for way in right if left[way] > 0], number):
                    began = time.perf_counter()
                    with run.leaving_out(f"{way}, {setting}, {case.name}, round {number + 1}"):
                        value = await seconds_per_call(standing[way].client, case, run.options.window)
                        run.add(setting, case.name, way, number, value)
                    left[way] -= time.perf_counter() - began


# Tools: 10 to 10,000 of them.


async def tools(run: Run) -> None:
    """What a call and a list cost where there are many tools."""
    counts = (10, 1_000) if run.options.quick else (10, 100, 1_000, 10_000)
    cases = [case for case in CASES if case.name in (TEXT, LIST)]
    async with AsyncExitStack() as stack:
        standing: dict[tuple[int, str], Running] = {}
        for gateway in run.gateways(NAIVE, PASSTHROUGH, "claude-code"):
            for count in counts:
                place = HTTP.with_tools(count)
                standing[count, gateway.name] = await stack.enter_async_context(
                    running(gateway, place, run.upstream_port, run.folder)
                )
        for number, case in product(range(run.options.rounds), cases):
            say(f"tools: round {number + 1}, {case.name}")
            for count, way in in_turn(standing, number):
                value = await seconds_per_call(standing[count, way].client, case, run.options.window)
                run.add(HTTP.with_tools(count), case.name, way, number, value)


# Sessions: 1 to 1,000 of them.


async def sessions(run: Run) -> None:
    """What a call costs where many hosts have a session, and what each weighs."""
    setting = dataclasses.replace(HTTP, era=Era.HANDSHAKE)
    counts = (1, 100) if run.options.quick else (1, 100, 1_000)
    text = next(case for case in CASES if case.name == TEXT)
    async with AsyncExitStack() as stack:
        standing = {
            gateway.name: await stack.enter_async_context(running(gateway, setting, run.upstream_port, run.folder))
            for gateway in run.gateways(NAIVE, PASSTHROUGH, CONNECTED)
        }
        weights = {way: _weight(each) for way, each in standing.items()}
        for before, count in zip((1, *counts), counts, strict=False):
            say(f"sessions: {count:,}")
            for each in standing.values():
                await _shake_hands(each, count - before)
            for way, each in standing.items():
                if count > 1:
                    run.add("sessions", f"memory of {count:,}", way, 0, (_weight(each) - weights[way]) / (count - 1))
            for number in range(run.options.rounds):
                for way in in_turn(standing, number):
                    value = await seconds_per_call(standing[way].client, text, run.options.window)
                    run.add("sessions", f"call at {count:,}", way, number, value)


async def _shake_hands(gateway: Running, count: int) -> None:
    for _ in range(count):
        client = HttpClient(Era.HANDSHAKE, gateway.port, "/mcp")
        await client.shake_hands()
        await client.close()


def _weight(gateway: Running) -> int:
    assert gateway.pid is not None
    return memory(gateway.pid)


# Memory and start-up: a process of its own for each number.


async def processes(run: Run) -> None:
    """Time to an open port; memory when idle, and at its peak with large calls in flight."""
    wire = len(result_bytes("image_8m", HTTP.era))
    ways = run.gateways()
    for number in range(_few(run)):
        for gateway in ways:
            if gateway.name in (DIRECT, FLOOR) or not run.fits(gateway, HTTP):
                continue
            say(f"processes: round {number + 1}, {gateway.name}")
            async with running(gateway, HTTP, run.upstream_port, run.folder) as standing:
                run.add(START, PORT_OPEN, gateway.name, number, standing.opened)
                for _ in range(20):
                    await one_call(standing.client, CASES[0])
                idle = _weight(standing)
                run.add(MEMORY, IDLE, gateway.name, number, idle)
                assert standing.pid is not None
                with peak(standing.pid) as highest:
                    await asyncio.gather(*(one_call(standing.client, EIGHT_MEGABYTES) for _ in range(IN_FLIGHT)))
                run.add(MEMORY, PER_CALL, gateway.name, number, (highest[0] - idle) / IN_FLIGHT / wire)
        await _upstreams(run, number)


async def _upstreams(run: Run, number: int) -> None:
    """What each upstream weighs, in parts of a gateway with one."""
    weights: list[int] = []
    for count in (1, 1 + UPSTREAMS):
        gateway = many_upstreams(count)
        async with running(gateway, HTTP, run.upstream_port, run.folder) as standing:
            await one_call(standing.client, CASES[0])
            weights.append(_weight(standing))
    run.add(MEMORY, PER_UPSTREAM, PASSTHROUGH, number, (weights[1] - weights[0]) / UPSTREAMS / weights[0])


async def first_answers(run: Run) -> None:
    """How soon a host has an answer over stdio, beside importing the SDK's server."""
    config = write_config(run.folder)
    for number in range(_few(run)):
        say(f"first answers: round {number + 1}")
        run.add(START, FIRST_ANSWER, IMPORTING, number, await asyncio.to_thread(importing))
        run.add(START, FIRST_ANSWER, FIRST_ANSWER, number, await asyncio.to_thread(first_answer, config, DISCOVER))


def _few(run: Run) -> int:
    """Starting processes takes long, and varies little."""
    return 1 if run.options.quick else min(run.options.rounds, 3)


# The loop: how long it was away.


class _Block(NamedTuple):
    """What the watch wrote of one block, in seconds."""

    moment: float
    away: float
    waited: float
    computing: float


async def loop(run: Run) -> None:
    """The longest that the loop was blocked while 12-megapixel images were scaled and results of 8 MB passed."""
    for profile in (PASSTHROUGH, "claude-code"):
        gateway = watched(profile)
        watch = run.folder / f"{gateway.name}.blocks"
        say(f"loop: {profile}")
        async with running(gateway, HTTP, run.upstream_port, run.folder) as standing:
            for case in (PHOTO, EIGHT_MEGABYTES):
                await check(standing.client, case)
            for number in range(run.options.rounds):
                async with _blocks(watch) as blocks:
                    await asyncio.gather(
                        *(
                            one_call(standing.client, case)
                            for case in (PHOTO, EIGHT_MEGABYTES)
                            for _ in range(LOOP_CALLS)
                        )
                    )
                for case, lengths in (
                    (LOOP_BLOCKED, [block.away - block.waited for block in blocks]),
                    (LOOP_COMPUTING, [block.computing for block in blocks]),
                    (LOOP_AWAY, [block.away for block in blocks]),
                ):
                    run.add(LOOP, case, profile, number, max(lengths, default=0.0) / 0.02)


@asynccontextmanager
async def _blocks(watch: Path) -> AsyncGenerator[list[_Block]]:
    """The blocks that the watch saw meanwhile."""
    found: list[_Block] = []
    began = time.monotonic()
    yield found
    ended = time.monotonic()
    found += [block for block in _watched(watch) if began <= block.moment <= ended]


def _watched(watch: Path) -> list[_Block]:
    if not watch.exists():
        return []
    return [_Block(*map(float, line.split())) for line in watch.read_text().splitlines()]


PARTS: Final[Mapping[str, Callable[[Run], Awaitable[None]]]] = {
    "calls": calls,
    "tools": tools,
    "sessions": sessions,
    "processes": processes,
    "first answers": first_answers,
    "loop": loop,
}
"""What a run consists of."""

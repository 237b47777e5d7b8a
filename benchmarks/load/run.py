"""The stages of a run: what each kind of call costs, what sessions and upstreams weigh, and hosts as they arrive."""

import asyncio
import gc
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.calls.driver import Address
from benchmarks.calls.gateways import Gateway, Place, Setting
from benchmarks.calls.processes import Running, memory, raw_upstream, running
from benchmarks.calls.wire import Era
from benchmarks.load.hosts import LoadHost, Target, close_hosts, open_hosts, run_hosts
from benchmarks.load.measured import Costs, KindCost, Stage
from benchmarks.load.model import cpu_of_mix
from benchmarks.load.pattern import LIST, MIX, Behaviour
from benchmarks.load.watch import Machine, cpu_of, watching

SETTING: Final = Setting("http", "http", Era.STATELESS)
PROFILE: Final = "claude-code"
CONNECTIONS: Final = 4_000
LEVELS: Final = (0.25, 0.5, 0.8, 1.5)
"""Calls offered, by those that one core is computed to carry; the last is more than it can do."""


@dataclass(frozen=True)
class Options:
    """How much is done. `calls` are those measured of each kind; a heavy kind gets a part of them."""

    hosts: int = 1_000
    at_once: int = 64
    calls: int = 2_000
    seconds: float = 45.0
    upstreams: int = 200
    levels: tuple[float, ...] = LEVELS
    kinds: tuple[str, ...] = tuple(MIX)


@dataclass(frozen=True)
class Found:
    """What a run has found. `throughput`: small calls per second with `at_once` of them in flight all the time."""

    costs: Costs
    throughput: float
    stages: tuple[Stage, ...]
    others: float = 0.0
    """The part of the cores (0 to 1) that other programs used meanwhile."""


HEAVY: Final[Mapping[str, float]] = {LIST: 0.25, "image_1m": 0.05, "photo": 0.01}
"""The part of the calls that is enough for a kind that takes long."""


def a_gateway(upstreams: int = 1) -> Gateway:
    """Return this gateway with so many upstreams, which are all the raw one."""

    def command(place: Place) -> list[str]:
        config = place.folder / f"load-{upstreams}.toml"
        tables = "".join(f'[upstreams.u{number}]\nurl = "{place.target[0]}"\n' for number in range(upstreams))
        config.write_text(f"[http]\nmax_connections = {CONNECTIONS}\n{tables}", "utf-8")
        start = [sys.executable, "-m", "gateway", "serve", "--profile", PROFILE, "--config", str(config)]
        return [*start, "--http", "--port", str(place.port)]

    return Gateway(f"load {upstreams}", "this gateway under load", command)


async def run(options: Options, folder: Path) -> Found:
    """Measure everything of a gateway on this machine, beside the raw upstream."""
    before = Machine.now()
    async with raw_upstream(folder) as upstream:
        upstream_bytes = await _upstream_bytes(options, upstream, folder)
        async with running(a_gateway(), SETTING, upstream, folder) as gateway:
            costs, throughput = await _costs(options, gateway, upstream_bytes)
            _say(f"costs: {costs}")
            stages = [await stage(options, gateway, costs, level) for level in options.levels]
        others = Machine.now().others_since(before)
    return Found(costs, throughput, tuple(stages), others)


async def run_urls(options: Options, targets: list[Target], mix: Mapping[str, float], rate: float) -> Stage:
    """Load gateways that run already, or a load balancer, with so many calls per second."""
    per_host = rate / options.hosts
    behaviour = Behaviour(think=Behaviour(1.0).calls_a_burst / per_host, mix=mix)
    hosts = await open_hosts(options.hosts, targets, behaviour, options.at_once)
    try:
        answers = await run_hosts(hosts, options.seconds)
    finally:
        await close_hosts(hosts)
    return Stage(f"{rate:.0f} calls/s", options.hosts, rate, options.seconds, answers, None)


async def stage(options: Options, gateway: Running, costs: Costs, level: float) -> Stage:
    """Offer a part of what one core is computed to carry, by all hosts together."""
    assert gateway.pid is not None
    own, _ = cpu_of_mix(costs, _mix(options))
    offered = level / own
    behaviour = Behaviour(think=Behaviour(1.0).calls_a_burst * options.hosts / offered, mix=_mix(options))
    at = Address(port=gateway.port)
    hosts = await open_hosts(options.hosts, [Target(at)], behaviour, options.at_once)
    gc.collect()
    try:
        async with watching(gateway.pid, at) as use:
            answers = await run_hosts(hosts, options.seconds)
    finally:
        await close_hosts(hosts)
    _say(f"{level:.0%}: {answers.count} served, {answers.refused} refused, {sum(answers.failed.values())} failed")
    return Stage(f"{level:.0%}", options.hosts, offered, options.seconds, answers, use[0])


async def _costs(options: Options, gateway: Running, upstream_bytes: float) -> tuple[Costs, float]:
    assert gateway.pid is not None
    target = Target(Address(port=gateway.port))
    few = await open_hosts(min(8, options.hosts), [target], Behaviour(1.0), options.at_once)
    for host in few:
        await host.once("text")
    await asyncio.sleep(0.5)
    idle = memory(gateway.pid)
    many = await open_hosts(options.hosts * 2, [target], Behaviour(1.0), options.at_once, few[0].client.names)
    await asyncio.sleep(0.5)
    session = max(0.0, (memory(gateway.pid) - idle) / options.hosts)  # half of them have no session
    await close_hosts(many)
    kinds: list[KindCost] = []
    for kind in options.kinds:
        count = max(8, int(options.calls * HEAVY.get(kind, 1.0)))
        await _calls(few, kind, len(few) // 2)  # the first ones start a worker, or open connections
        before = cpu_of(gateway.pid)
        await _calls(few, kind, count)
        after = cpu_of(gateway.pid)
        kinds.append(KindCost(kind, (after.own - before.own) / count, (after.media - before.media) / count))
    throughput = await _throughput(options, few)
    await close_hosts(few)
    return Costs(tuple(kinds), idle, session, upstream_bytes), throughput


async def _throughput(options: Options, hosts: list[LoadHost]) -> float:
    """Small calls per second with `at_once` of them in flight, for a part of the time of a stage."""
    loop = asyncio.get_running_loop()
    end, done = loop.time() + options.seconds / 6, 0

    async def go_on(number: int) -> None:
        nonlocal done
        while loop.time() < end:
            await hosts[number % len(hosts)].once("text")
            done += 1

    began = loop.time()
    await asyncio.gather(*(go_on(number) for number in range(options.at_once)))
    return done / (loop.time() - began)


async def _calls(hosts: list[LoadHost], kind: str, count: int) -> None:
    """Make so many calls of a kind, one of each host at once, as fast as they are answered."""
    left = count

    async def go_on(host: LoadHost) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await host.once(kind)

    await asyncio.gather(*(go_on(host) for host in hosts))


async def _upstream_bytes(options: Options, upstream: int, folder: Path) -> float:
    """Bytes of each upstream at a URL, connected and listed, with what its tools take."""
    sizes = list[int]()
    for count in (1, 1 + options.upstreams):
        async with running(a_gateway(count), SETTING, upstream, folder) as gateway:
            assert gateway.pid is not None
            await _settled(gateway.pid)
            sizes.append(memory(gateway.pid))
    return (sizes[1] - sizes[0]) / options.upstreams


async def _settled(pid: int) -> None:
    """Wait until the process has done nearly nothing for a second, for at most a minute."""
    for _ in range(60):
        before = cpu_of(pid).own
        await asyncio.sleep(1)
        if cpu_of(pid).own - before < 0.05:
            return


def _mix(options: Options) -> Mapping[str, float]:
    return {kind: share for kind, share in MIX.items() if kind in options.kinds}


def _say(words: str) -> None:
    print(words, flush=True)

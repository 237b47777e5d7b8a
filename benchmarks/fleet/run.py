"""A run: hosts that call all the time, and faults in turn while they do."""

import asyncio
import base64
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.fleet.clients import STATELESS, CutOff, Told
from benchmarks.fleet.hosts import FleetHost
from benchmarks.fleet.ledger import Ledger, Promise
from benchmarks.fleet.programs import Fleet, running_fleet
from benchmarks.fleet.relay import Cable

Fault = Callable[[Fleet], Awaitable[None]]
_AT_ONCE = 8


@dataclass(frozen=True)
class Options:
    """How much is done: hosts, the seconds that each thinks between two calls, and the seconds of the phases.

    `away` is how long Redis and the store are gone; `calm` how long calling goes on after each fault.
    """

    hosts: int = 200
    think: float = 25.0
    calm: float = 20.0
    redis_away: float = 5.0
    store_away: float = 30.0
    lost_after: float = 5.0
    grace: float = 20.0
    nginx: bool = True


@dataclass(frozen=True)
class Phase:
    """One part of a run. `fault` is when it began, `ended` when the next one did; both of the loop's clock."""

    name: str
    fault: float
    ended: float


@dataclass(frozen=True)
class Found:
    """What a run has found. `read` is the number of promised handles that were looked at."""

    phases: tuple[Phase, ...]
    ledger: Ledger
    read: int


async def run(options: Options, folder: Path) -> Found:
    """Run everything.

    Raises:
        Missing: a program is not installed, or does not start.
    """
    ledger = Ledger()
    async with (
        running_fleet(folder, nginx=options.nginx, lost_after=options.lost_after, grace=options.grace) as fleet,
        _http() as http,
    ):
        url = f"http://127.0.0.1:{fleet.entrance}/mcp"
        hosts = [FleetHost(number, http, url, ledger, options.think) for number in range(options.hosts)]
        await _each([host.open for host in hosts])
        _say(f"{len(hosts)} hosts call {len(fleet.replicas)} replicas")
        stopped = asyncio.Event()
        calling = [asyncio.create_task(host.behave(stopped)) for host in hosts]
        phases = [await _phase(fleet, ledger, name, fault, options.calm) for name, fault in _faults(options)]
        stopped.set()
        await asyncio.gather(*calling)
        _say(f"{len(ledger.promises)} handles are read by their owners, and by others")
        read = await _read_all(hosts, ledger)
        ledger.carried_out((await http.get(f"http://127.0.0.1:{fleet.upstream.port}/carried")).json())
        await asyncio.gather(*(host.close() for host in hosts))
    return Found(tuple(phases), ledger, read)


def _faults(options: Options) -> Sequence[tuple[str, Fault]]:
    async def nothing(_: Fleet) -> None:
        pass

    async def kill(fleet: Fleet) -> None:
        fleet.replicas[0].signal(signal.SIGKILL)
        await fleet.replicas[0].ended()
        await asyncio.sleep(options.lost_after)
        await fleet.remove(fleet.replicas[0])

    async def drain(fleet: Fleet) -> None:
        leaving = fleet.replicas[0]
        leaving.signal(signal.SIGTERM)
        status = await leaving.ended(options.grace + 20)
        await fleet.remove(leaving)
        _say(f"the drained replica has ended with {status}")

    async def add(fleet: Fleet) -> None:
        await fleet.add_replica()

    async def restart_redis(fleet: Fleet) -> None:
        fleet.redis.signal(signal.SIGKILL)
        await fleet.redis.ended()
        await asyncio.sleep(options.redis_away)
        await fleet.redis.start()

    async def pull_store(fleet: Fleet) -> None:
        await fleet.store.set(Cable.PULLED)
        await asyncio.sleep(options.store_away)
        await fleet.store.set(Cable.WHOLE)

    async def silence_store(fleet: Fleet) -> None:
        await fleet.store.set(Cable.SILENT)
        await asyncio.sleep(options.store_away)
        await fleet.store.set(Cable.WHOLE)

    return (
        ("nothing happens", nothing),
        ("a replica is killed", kill),
        ("a replica is drained", drain),
        ("a replica is added", add),
        (f"Redis is gone for {options.redis_away:g} s, and comes back empty", restart_redis),
        (f"the store refuses connections for {options.store_away:g} s", pull_store),
        (f"the store does not answer for {options.store_away:g} s", silence_store),
        ("nothing happens", nothing),
    )


async def _phase(fleet: Fleet, ledger: Ledger, name: str, fault: Fault, calm: float) -> Phase:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await fault(fleet)
    await asyncio.sleep(calm)
    number, ledger.phase = ledger.phase, ledger.phase + 1
    counts = Counter(call.outcome for call in ledger.of_phase(number))
    _say(f"{name}: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return Phase(name, began, loop.time())


async def _read_all(hosts: Sequence[FleetHost], ledger: Ledger) -> int:
    """Read every handle as its owner, who must get the bytes, and as another principal, who must not."""
    readers = {host.principal: host for host in sorted(hosts, key=lambda host: host.revision == STATELESS)}

    async def look(promise: Promise) -> None:
        owner = readers[promise.principal]
        other = readers[_another(promise.principal, tuple(readers))]
        try:
            data = b"".join(_bytes(one) for one in (await owner.read(promise.handle))["contents"])
            if promise.mark.encode() not in data:
                ledger.lost.append(f"the content of {promise.handle} is not what was promised")
        except (Told, CutOff) as error:
            ledger.lost.append(f"its owner cannot read {promise.handle}: {error}")
        with suppress(Told, CutOff):
            ledger.foreign.append(f"{promise.handle} of {promise.principal}: {await other.read(promise.handle)}")

    mine = [one for one in ledger.promises if one.principal in readers]
    await _each([lambda one=one: look(one) for one in mine])
    return len(mine)


def _another(principal: str, principals: Sequence[str]) -> str:
    return principals[(principals.index(principal) + 1) % len(principals)]


def _bytes(content: Mapping[str, Any]) -> bytes:
    return base64.b64decode(content["blob"]) if "blob" in content else str(content.get("text", "")).encode()


async def _each(made: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Do all of it, some at once."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(make: Callable[[], Awaitable[None]]) -> None:
        async with turns:
            await make()

    await asyncio.gather(*(one(make) for make in made))


def _http() -> httpx2.AsyncClient:
    """Return the client of all hosts. No connection is used twice, so that each request may go to any replica."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx2.AsyncClient(trust_env=False, limits=limits, timeout=httpx2.Timeout(None, connect=10))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)

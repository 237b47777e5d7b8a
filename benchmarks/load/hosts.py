"""Hosts that call a gateway as `pattern` says, at most so many of them at once."""

import asyncio
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.calls.driver import Address, HttpClient, NotAnswered, Refused, result_of
from benchmarks.calls.wire import ARGUMENTS
from benchmarks.load.measured import Answers
from benchmarks.load.pattern import LIST, Behaviour, era_of

MOST_TRIES = 20
"""How often a host asks again when it was refused, each time after the seconds that it was told."""


class Target(NamedTuple):
    """A gateway: its address, the path of its endpoint, and the arguments for tools that are not the benchmark's."""

    at: Address
    path: str = "/mcp"
    arguments: Mapping[str, Any] = ARGUMENTS

    @classmethod
    def of_url(cls, url: str, token: str | None = None, arguments: Mapping[str, Any] = ARGUMENTS) -> "Target":
        """Return the gateway at a URL. Raises ValueError if it is not one."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"{url!r} is not the URL of a gateway: give one such as http://127.0.0.1:8484/mcp")
        tls = ssl.create_default_context() if parts.scheme == "https" else None
        headers = () if token is None else (f"authorization: Bearer {token}",)
        port = parts.port or (80 if tls is None else 443)
        return cls(Address(parts.hostname, port, tls, headers), parts.path or "/mcp", arguments)


class LoadHost:
    """One host: its connection, and what it does from now on."""

    def __init__(self, number: int, target: Target, behaviour: Behaviour, turns: asyncio.Semaphore) -> None:
        self._number = number
        self._behaviour = behaviour
        self._arguments = target.arguments
        self._turns = turns
        self.client = HttpClient(era_of(number), target.at, target.path)

    async def open(self, names: Sequence[str]) -> None:
        """Open a session, if it is of an era with sessions. `names` are the tools, if they are known."""
        for _ in range(MOST_TRIES):
            try:
                if not names:
                    await self.client.open()
                    return
                if self.client.era == "2025-11-25":
                    await self.client.shake_hands()
                self.client.names = names
                return
            except Refused as refused:
                await asyncio.sleep(refused.retry_after)
        raise NotAnswered("the gateway refuses every host")

    async def behave(self, until: float, answers: Answers) -> None:
        """Call until that moment of the loop's clock, and then wait for the last answers."""
        loop = asyncio.get_running_loop()
        running = set[asyncio.Task[None]]()
        for burst in self._behaviour.bursts(self._number):
            begins = loop.time() + burst.think
            if begins >= until:
                await asyncio.sleep(max(0.0, until - loop.time()))
                break
            await asyncio.sleep(burst.think)
            running |= {loop.create_task(self._ask(kind, answers)) for kind in burst.kinds}
            # The next thought begins when everything is answered, as with a model.
            await asyncio.wait(running)
            running.clear()

    async def _ask(self, kind: str, answers: Answers) -> None:
        """Ask once, and again when told to. The time is from when the host wanted to ask until it has the answer."""
        began = time.perf_counter()
        for _ in range(MOST_TRIES):
            try:
                async with self._turns:
                    await self.once(kind)
            except Refused as refused:
                answers.refused += 1
                await asyncio.sleep(refused.retry_after)
            except (NotAnswered, OSError, TimeoutError) as error:
                answers.failed[f"{type(error).__name__}: {error}"[:160]] += 1
                return
            else:
                answers.served(kind, time.perf_counter() - began)
                return
        answers.failed["refused again and again"] += 1

    async def once(self, kind: str) -> None:
        """Ask once. Raises Refused if the gateway can take no more, NotAnswered for anything but a result."""
        if kind == LIST:
            result_of(await self.client.list_tools())
            return
        answer = await self.client.call(kind, self._arguments)
        if b'"error":' in answer[:400] and b'"retryAfter"' in answer:
            raise Refused("an upstream's queue is full", 1.0)
        if b'"result":' not in answer:
            raise NotAnswered(answer[:160].decode("utf-8", "replace"))

    async def close(self) -> None:
        """Leave."""
        await self.client.close()


async def open_hosts(
    count: int, targets: Sequence[Target], behaviour: Behaviour, at_once: int, names: Sequence[str] = ()
) -> list[LoadHost]:
    """Open so many hosts, spread over the targets in turn; at most `at_once` of them have calls in flight."""
    turns = asyncio.Semaphore(at_once)
    hosts = [LoadHost(number, targets[number % len(targets)], behaviour, turns) for number in range(count)]
    if not names:
        await hosts[0].open(())
        names = hosts[0].client.names
        rest = hosts[1:]
    else:
        rest = hosts

    opening = asyncio.Semaphore(32)

    async def open_one(host: LoadHost) -> None:
        async with opening:
            await host.open(names)

    await asyncio.gather(*(open_one(host) for host in rest))
    return hosts


async def run_hosts(hosts: Sequence[LoadHost], seconds: float) -> Answers:
    """Let the hosts behave for so long, and return what became of their calls."""
    answers, until = Answers(), asyncio.get_running_loop().time() + seconds
    await asyncio.gather(*(host.behave(until, answers) for host in hosts))
    return answers


async def close_hosts(hosts: Sequence[LoadHost]) -> None:
    """Let all of them leave."""
    for host in hosts:
        await host.close()

"""Replicas that are replaced, killed and added while hosts of every kind call: no answer is lost without a word."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2

from tests.serving.cluster.conftest import ALICE, BOB, Host, Replicas
from tests.telemetry.conftest import Serving

A_MINUTE = 60
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")


class Balancer:
    """A load balancer without rules: each request to the next server, and to another one if nothing listens there."""

    def __init__(self, servers: list[Serving]) -> None:
        self.servers = servers
        self._turn = itertools.count()

    def all_in_turn(self) -> Iterator[Serving]:
        servers, start = list(self.servers), next(self._turn)
        return (servers[(start + place) % len(servers)] for place in range(len(servers)))

    def sent(self, send: Callable[[Serving], str]) -> str:
        for server in self.all_in_turn():
            try:
                return send(server)
            except httpx2.ConnectError:
                continue
        raise AssertionError("no server listens")


class Caller:
    """A host that calls until it is stopped, and counts what becomes of its calls."""

    def __init__(self, host: Host, balancer: Balancer) -> None:
        self.host = host
        self.balancer = balancer
        self.outcomes: Counter[str] = Counter()
        self.whys: list[str] = []
        self.stopped = threading.Event()
        if host.revision != "2026-07-28":
            balancer.sent(host.open)

    def run(self) -> None:
        while not self.stopped.is_set():
            self.outcomes[self.outcome()] += 1

    def outcome(self) -> str:
        try:
            text = self.balancer.sent(self.call)
        except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
            self.whys.append(repr(error))
            return "broken off"  # at the replica itself: a load balancer answers 502 for it
        if text.split()[0].isdigit():
            return "answered"
        self.whys.append(text)
        if "try again in a moment" in text:
            time.sleep(0.5)
            return "to be tried again"
        return "told why" if "gone" in text else text

    def call(self, at: Serving) -> str:
        arguments = {"seconds": 0.05}
        if self.host.revision == "2026-07-28":
            return self.host.now(at, "all__sleep", **arguments)
        message = self.host.message("tools/call", {"name": "all__sleep", "arguments": arguments})
        with self.host.stream(at, message) as events:
            found = [event for event in events if event is not None and "id" in event]
        if not found and self.host.revision == "2025-11-25":
            return self.balancer.sent(lambda at: self.resumed(at, events.id))
        return self.text(found[0]) if found else "no answer"

    def resumed(self, at: Serving, last: str) -> str:
        with self.host.stream(at, **{"Last-Event-ID": last}) as events:
            return self.text(next(event for event in events if event is not None))

    @staticmethod
    def text(answer: dict) -> str:
        return answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"]


def test_no_call_fails_while_every_replica_is_replaced(replicas: Replicas, host: Callable[..., Host]) -> None:
    balancer = Balancer([replicas.start(), replicas.start()])
    with ThreadPoolExecutor(8) as threads:
        callers = [Caller(host(token, one), balancer) for one in REVISIONS for token in (ALICE, BOB)]
        runs = [threads.submit(caller.run) for caller in callers]
        for old in tuple(balancer.servers):
            balancer.servers = [*balancer.servers, replicas.start()]
            old.process.terminate()
            assert old.process.wait(A_MINUTE) == 0
            balancer.servers = [one for one in balancer.servers if one is not old]
            time.sleep(1)
        for caller in callers:
            caller.stopped.set()
        for run in runs:
            run.result(A_MINUTE)
    for caller in callers:
        assert set(caller.outcomes) == {"answered"}, (caller.host.revision, caller.outcomes, caller.whys)
        assert caller.outcomes["answered"] > 5


def test_every_call_that_fails_says_why_when_a_replica_and_redis_are_killed(
    replicas: Replicas, host: Callable[..., Host]
) -> None:
    balancer = Balancer([replicas.start(), replicas.start(), replicas.start()])
    with ThreadPoolExecutor(8) as threads:
        callers = [Caller(host(token, one), balancer) for one in REVISIONS for token in (ALICE, BOB)]
        runs = [threads.submit(caller.run) for caller in callers]
        time.sleep(1)
        balancer.servers[0].process.kill()
        time.sleep(2)
        replicas.redis.stop()
        time.sleep(2)
        replicas.redis.start()
        time.sleep(2)
        for caller in callers:
            caller.stopped.set()
        for run in runs:
            run.result(A_MINUTE)
    for caller in callers:
        assert set(caller.outcomes) <= {"answered", "told why", "broken off", "to be tried again"}, caller.outcomes
        assert caller.outcomes["answered"] > 5
        assert caller.outcomes["told why"] + caller.outcomes["broken off"] <= 2, "one call at a time"

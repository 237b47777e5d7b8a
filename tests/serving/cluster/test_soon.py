"""What is written to the records of a cluster in the background: nothing is lost by those who wait for it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest

from gateway.config.schema import Settings
from gateway.serving.cluster.cluster import Cluster
from gateway.serving.cluster.local_use import LocalUse
from gateway.serving.cluster.replicas import Replica, new_id
from gateway.serving.cluster.soon import Soon
from gateway.serving.databases.local_records import LocalRecords

pytestmark = pytest.mark.anyio


class Records(LocalRecords):
    """Records that can be slow, or away."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.answers = anyio.Event()
        self.answers.set()
        self.is_away = False

    @asynccontextmanager
    async def reached(self) -> AsyncGenerator[Any]:
        await self.answers.wait()
        if self.is_away:
            raise self.availability.lost("no answer")
        async with super().reached() as redis:
            yield redis


@pytest.fixture
async def make(tmp_path: Path) -> AsyncGenerator[Callable[[], Records]]:
    """Makes connections to one file."""
    made: list[Records] = []

    def make() -> Records:
        made.append(Records(tmp_path / "records"))
        return made[-1]

    yield make
    for one in made:
        await one.close()


async def value(records: Records, key: str) -> str | None:
    async with records.reached() as redis:
        found: str | None = await redis.get(key)
        return found


async def test_whoever_waits_for_it_may_leave_and_what_others_have_written_is_still_written(
    make: Callable[[], Records],
) -> None:
    records = make()
    soon = Soon(records)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(soon.run)
        records.answers = anyio.Event()
        soon.write(lambda pipe: pipe.set("task", "of another host"))
        with anyio.move_on_after(0.05) as left:
            await soon.written(60)
        assert left.cancelled_caught
        records.answers.set()
        with anyio.fail_after(10):
            await soon.written(60)
        assert await value(records, "task") == "of another host"
        tasks.cancel_scope.cancel()


async def test_it_is_waited_for_what_is_due_and_not_for_what_comes_later(make: Callable[[], Records]) -> None:
    records = make()
    soon = Soon(records)
    async with anyio.create_task_group() as tasks:

        async def write_on() -> None:
            while True:
                soon.write(lambda pipe: pipe.set("more", "1"))
                await anyio.lowlevel.checkpoint()

        tasks.start_soon(soon.run)
        tasks.start_soon(write_on)
        soon.write(lambda pipe: pipe.set("first", "1"))
        with anyio.fail_after(10):
            await soon.written(60)
        assert await value(records, "first") == "1"
        records.answers = anyio.Event()
        soon.write(lambda pipe: pipe.set("second", "1"))
        with anyio.fail_after(10):
            await soon.written(0.05)
        tasks.cancel_scope.cancel()


def replica_of(records: Records, client: httpx2.AsyncClient) -> Cluster:
    name = new_id()
    return Cluster(Settings(), client, records, Replica(name, ""), partial(LocalUse, records, name))


async def test_what_could_not_be_written_for_a_moment_is_told_afterwards(make: Callable[[], Records]) -> None:
    records = make()
    async with httpx2.AsyncClient() as client:
        one, other = replica_of(records, client), replica_of(make(), client)
        async with one.present(), other.present():
            one.replicas.open_at("http://one")
            await one.replicas.look()
            records.is_away = True
            one.task_given("client", "task", {"upstream": "up"})
            one.call_ended("client", "c_1", {"upstream": "up", "tool": "t"}, 600.0)
            await one.told()
            records.is_away = False
            await one.replicas.look()
            await one.told()
            assert await other.route_of_task("client", "task") == {"upstream": "up"}
            found = await other.call_elsewhere("client", "c_1")
            assert found is not None
            assert found.outcome == {"upstream": "up", "tool": "t"}

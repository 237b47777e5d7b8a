"""Which replicas are there: nobody takes from one that is what it has."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from gateway.errors import StateUnavailable
from gateway.serving.cluster.replicas import Replica, Replicas, new_id
from gateway.serving.databases.local_records import LocalRecords

pytestmark = pytest.mark.anyio


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[LocalRecords]:
    made = LocalRecords(tmp_path / "records")
    yield made
    await made.close()


def started(records: LocalRecords) -> Replicas:
    return Replicas(records, Replica(new_id(), ""), 10.0)


async def test_a_replica_that_has_just_come_is_found_however_lately_one_has_looked(records: LocalRecords) -> None:
    first, second = started(records), started(records)
    first.open_at("http://127.0.0.1:1")
    await first.look()
    second.open_at("http://127.0.0.1:2")
    await second.look()
    found = await first.find(second.own.id)
    assert found == second.own


async def test_whoever_asks_for_all_is_told_of_one_that_has_just_come(records: LocalRecords) -> None:
    first, second = started(records), started(records)
    first.open_at("http://127.0.0.1:1")
    await first.look()
    second.open_at("http://127.0.0.1:2")
    await second.look()
    assert first.others() == [], "it looks again after some seconds"
    assert await first.others_now() == [second.own]


async def test_many_looks_for_replicas_that_nobody_knows_are_one(records: LocalRecords) -> None:
    looks: list[None] = []
    first = Replicas(records, Replica(new_id(), ""), 10.0, on_found=lambda: looks.append(None))
    await first.look()
    looks.clear()
    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(first.find, new_id())
    assert 1 <= len(looks) <= 2


async def test_nothing_is_answered_before_the_others_can_find_a_replica(records: LocalRecords) -> None:
    first, second = started(records), started(records)
    await second.look()
    assert not second.has_begun, "it does not listen yet"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(second.run)
        second.open_at("http://127.0.0.1:2")
        with anyio.fail_after(30):
            await second.begun()
        assert await first.find(second.own.id) == second.own
        tasks.cancel_scope.cancel()


async def test_of_replicas_at_one_address_only_the_last_is_there(records: LocalRecords) -> None:
    """One that was killed is in the records for a while, and another is started in its place."""
    before, after, other = (started(records) for _ in range(3))
    before.open_at("http://127.0.0.1:1")
    other.open_at("http://127.0.0.1:2")
    for one in (before, other):
        await one.look()
    assert await other.find(before.own.id) == before.own
    after.open_at("http://127.0.0.1:1")
    for one in (after, other):
        await one.look()
    assert await after.find(before.own.id) is None, "it would ask itself"
    assert await other.find(before.own.id) is None
    assert await other.find(after.own.id) == after.own


async def test_a_replica_that_comes_when_redis_was_emptied_waits_until_the_others_have_told_it_again(
    records: LocalRecords,
) -> None:
    first, second = started(records), started(records)
    first.open_at("http://127.0.0.1:1")
    await first.look()
    await first.all_told()
    records.connection.execute("DELETE FROM records")
    await first.look()
    second.open_at("http://127.0.0.1:2")
    await second.look()
    for one in (first, second):
        with pytest.raises(StateUnavailable):
            await one.all_told()


async def test_only_one_that_stood_still_was_missed(records: LocalRecords) -> None:
    now = 0.0
    missed: list[bool] = []
    one = Replicas(records, Replica(new_id(), ""), 10.0, on_forgotten=missed.append, clock=lambda: now)
    one.open_at("http://127.0.0.1:1")
    for seconds in (0, 2, 11, 2):
        now += seconds
        records.connection.execute("DELETE FROM records")
        await one.look()
    assert missed == [False, True, False]

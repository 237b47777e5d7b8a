"""Which replica has whose state: nobody's begins anew, or goes back in time, without a word."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.errors import UpstreamUnavailable
from gateway.serving.cluster.keys import replica_key
from gateway.serving.cluster.replicas import Replica, Replicas, new_id
from gateway.serving.cluster.session_index import SessionIndex, SessionRecord
from gateway.serving.cluster.soon import Soon
from gateway.serving.cluster.state_owners import StateOwners
from gateway.serving.databases.local_records import LocalRecords
from gateway.upstream.connection.owners import owner_by_session

pytestmark = pytest.mark.anyio
MANY = 12_000
"""More sessions than a replica has open at once."""
LOST_AFTER = 10.0


class One:
    """One replica, with a clock of its own."""

    def __init__(self, records: LocalRecords) -> None:
        self.now = 0.0
        self.was_missed: bool | None = None
        own = Replica(new_id(), "")
        self.replicas = Replicas(records, own, LOST_AFTER, self._forgotten, clock=lambda: self.now)
        self.index = SessionIndex(records, own.id, 3_600.0, has_been_told=lambda: self.replicas.has_been_told)
        self.owners = StateOwners(records, self.replicas, self.index, clock=lambda: self.now)
        self.soon = Soon(records)
        self.moved: list[tuple[str, str]] = []
        self.owners.on_moved = lambda upstream, owner: self.moved.append((upstream, owner))
        self.replicas.open_at(f"http://{own.id}")

    def _forgotten(self, was_missed: bool) -> None:
        self.was_missed = was_missed

    async def look(self) -> None:
        await self.replicas.look()
        if self.was_missed is not None:
            self.owners.rewrite(self.soon, was_missed=self.was_missed)
            self.was_missed = None
        self.owners.settle(self.soon)
        await self.soon.rest()

    async def call(self) -> str:
        """Call for an owner, and return what the host is told; nothing if the call is made."""
        try:
            await self.owners.before_call("own", "client alice")
        except UpstreamUnavailable as error:
            return error.message
        return ""


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[LocalRecords]:
    made = LocalRecords(tmp_path / "records")
    yield made
    await made.close()


async def test_whoever_was_missed_does_not_go_on_with_a_state_that_has_begun_anew_elsewhere(
    records: LocalRecords,
) -> None:
    """Also if what the other one has claimed was lost, with everything else, before this one could read it."""
    first, second = One(records), One(records)
    for one in (first, second, first):
        await one.look()
    assert await first.call() == ""
    async with records.reached() as redis:
        await redis.delete(replica_key(first.replicas.own.id))  # it stands still
    await second.look()
    assert "its state is lost" in await second.call()
    assert await second.call() == ""
    records.connection.execute("DELETE FROM records")
    first.now += 2 * LOST_AFTER
    await first.look()
    assert await first.call() != "", "it cannot know yet"
    await second.look()
    assert await second.call() == ""
    first.now += LOST_AFTER
    await first.look()
    assert "another replica of the gateway holds its state" in await first.call()
    assert first.moved == [("own", "client alice")]
    assert await second.call() == ""


async def test_whoever_was_missed_goes_on_with_a_state_that_nobody_has_taken(records: LocalRecords) -> None:
    first, second = One(records), One(records)
    for one in (first, second, first):
        await one.look()
    assert await first.call() == ""
    records.connection.execute("DELETE FROM records")
    first.now += 2 * LOST_AFTER
    for one in (first, second):
        await one.look()
    assert "cannot be asked" in await first.call()
    assert await first.call() == ""
    first.now += LOST_AFTER
    second.now += LOST_AFTER
    await first.look()
    assert await first.call() == ""
    await second.look()
    assert "another replica" in await second.call()
    assert not first.moved


async def test_each_of_very_many_sessions_that_are_taken_over_is_told_what_is_lost(records: LocalRecords) -> None:
    one = One(records)
    names = [f"{new_id()}.{number}" for number in range(MANY)]
    for name in names:
        one.index.add(SessionRecord(name, None, "alice", None, {}, upstreams=["own"], lost=["own"]))
    for name in names:
        with pytest.raises(UpstreamUnavailable, match="its state is lost"):
            await one.owners.before_call("own", owner_by_session(name))
        await one.owners.before_call("own", owner_by_session(name))

"""The records of sessions in a Redis, and in a Redis cluster, which knows fewer commands."""

from collections.abc import AsyncIterator

import pytest

from gateway.errors import StateUnavailable
from gateway.serving.cluster.keys import TAG
from gateway.serving.cluster.session_index import SessionIndex, SessionRecord
from gateway.serving.databases.availability import Availability
from gateway.serving.databases.redis_connection import RedisConnection
from tests.servers.redis_server import RedisCluster, RedisServer

pytestmark = pytest.mark.anyio
ONE, TWO = "0123456789ab.one", "0123456789ab.two"


@pytest.fixture(params=["redis", "redis_cluster"])
async def records(request: pytest.FixtureRequest) -> AsyncIterator[RedisConnection]:
    server: RedisServer | RedisCluster = request.getfixturevalue(request.param)
    made = RedisConnection(server.url, TAG, "cluster.url", Availability("what is tested", "it cannot be asked"))
    yield made
    await made.close()


async def test_sessions_are_written_taken_over_left_and_forgotten(records: RedisConnection) -> None:
    first, second = SessionIndex(records, "first", 60.0), SessionIndex(records, "second", 60.0)
    for one in (ONE, TWO):
        first.add(SessionRecord(one, None, "alice", "a token", {"capabilities": {}}))
    await first.flush()
    found = await second.find(ONE)
    assert found is not None
    assert (found.replica, found.principal, found.token) == ("first", "alice", "a token")
    taken = await second.claim(found)
    assert taken is not None
    second.add(taken)
    first.rewrite()
    await first.flush()
    assert (first.is_elsewhere(ONE), first.is_elsewhere(TWO)) == (True, False)
    await first.leave(TWO, ({"id": "1"},))
    left = await second.find(TWO)
    assert left is not None
    assert left.replica is None
    assert await second.answers(TWO) == [{"id": "1"}]
    await second.forget_answers(TWO)
    assert await second.answers(TWO) == []
    second.remove(ONE)
    await second.flush()
    assert await first.find(ONE) is None


@pytest.mark.parametrize("was_missed", [True, False])
async def test_whoever_was_missed_finds_out_who_has_a_session_though_redis_was_emptied(
    records: RedisConnection, was_missed: bool
) -> None:
    """Taken over twice, and Redis emptied before the first two have noticed: they write before the third does."""
    is_told = False
    first, second, third = (
        SessionIndex(records, name, 60.0, has_been_told=lambda: is_told) for name in ("first", "second", "third")
    )
    first.add(SessionRecord(ONE, None, "alice", None, {}))
    await first.flush()
    for index in (second, third):
        found = await index.find(ONE)
        assert found is not None
        taken = await index.claim(found)
        assert taken is not None
        index.add(taken)
        await index.flush()
    async with records.reached() as redis:
        await redis.flushdb()
    for index in (first, second):
        index.rewrite(was_missed=was_missed)
        await index.flush()
        if was_missed:
            with pytest.raises(StateUnavailable):
                await index.confirm(ONE)
        else:
            await index.confirm(ONE)
    third.rewrite()
    await third.flush()
    await third.confirm(ONE)
    for index in (first, second):
        await index.confirm(ONE)
    assert [index.is_elsewhere(ONE) for index in (first, second, third)] == [True, True, False]
    found = await first.find(ONE)
    assert found is not None
    assert (found.replica, found.taken) == ("third", 2)


async def test_whoever_was_missed_goes_on_once_all_have_told_redis_again(records: RedisConnection) -> None:
    is_told = False
    first = SessionIndex(records, "first", 60.0, has_been_told=lambda: is_told)
    first.add(SessionRecord(ONE, None, "alice", None, {}))
    first.rewrite(was_missed=True)
    await first.flush()
    with pytest.raises(StateUnavailable):
        await first.confirm(ONE)
    is_told = True
    await first.confirm(ONE)
    assert not first.is_elsewhere(ONE)


async def test_a_session_whose_replica_stood_still_is_not_in_doubt_if_redis_still_knows_it(
    records: RedisConnection,
) -> None:
    first = SessionIndex(records, "first", 60.0, has_been_told=lambda: False)
    first.add(SessionRecord(ONE, None, "alice", None, {}))
    await first.flush()
    first.rewrite(was_missed=True)
    await first.confirm(ONE)
    await first.confirm(ONE)
    assert not first.is_elsewhere(ONE)


async def test_a_session_that_was_claimed_and_not_opened_can_be_claimed_again(records: RedisConnection) -> None:
    first, second = SessionIndex(records, "first", 60.0), SessionIndex(records, "second", 60.0)
    first.add(SessionRecord(ONE, None, "alice", None, {}, upstreams=["own"]))
    await first.flush()
    for _ in range(2):
        found = await second.find(ONE)
        assert found is not None
        assert not second.is_ending(ONE)
        taken = await second.claim(found)
        assert taken is not None
        assert taken.lost == ["own"], "of which its host was not told"
        second.add(taken)
        second.let_go(ONE)
        await second.flush()
    second.add(taken)
    second.remove(ONE)
    assert second.is_ending(ONE)
    await second.flush()
    assert await second.find(ONE) is None
    assert not second.is_ending(ONE)

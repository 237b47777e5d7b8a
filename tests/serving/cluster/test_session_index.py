"""The records of sessions in a Redis, and in a Redis cluster, which knows fewer commands."""

from collections.abc import AsyncIterator

import pytest

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
    assert await second.take_answers(TWO) == [{"id": "1"}]
    second.remove(ONE)
    await second.flush()
    assert await first.find(ONE) is None

"""Connections to a Redis that several users share, some of which fail."""

import pytest

from gateway.errors import StateUnavailable
from gateway.serving.databases.redis_connection import RedisConnection
from tests.servers.redis_server import RedisCluster

pytestmark = pytest.mark.anyio


async def fail(connection: RedisConnection) -> None:
    async with connection.reached():
        raise OSError("the node is gone")


async def test_a_failure_closes_no_client_that_others_still_use(redis_cluster: RedisCluster) -> None:
    connection = RedisConnection(redis_cluster.url, "{tag}", "cluster.url")
    async with connection.reached() as first:
        await first.set("{tag}:a", "1")
        with pytest.raises(StateUnavailable):
            await fail(connection)
        async with connection.reached() as third:
            assert third is not first, "the node is looked for again"
            assert await third.get("{tag}:a") == "1"
        assert await first.get("{tag}:a") == "1", "it is open for whoever still uses it"
        assert first.connection_pool._available_connections
    assert not any(one.is_connected for one in first.connection_pool._available_connections), "and closed afterwards"
    await connection.close()


async def test_a_late_failure_of_a_former_client_leaves_the_next_one_alone(redis_cluster: RedisCluster) -> None:
    connection = RedisConnection(redis_cluster.url, "{tag}", "cluster.url")
    late = connection.reached()
    first = await late.__aenter__()
    with pytest.raises(StateUnavailable):
        await fail(connection)
    async with connection.reached() as second:
        assert second is not first
    error = OSError("which this one notices late")
    with pytest.raises(StateUnavailable):
        await late.__aexit__(OSError, error, None)
    async with connection.reached() as third:
        assert third is second
    await connection.close()

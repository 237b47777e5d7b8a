"""Connections to a Redis that several users share, some of which fail."""

import time

import anyio
import pytest

from gateway.errors import StateUnavailable
from gateway.serving.databases.redis_connection import RedisConnection
from tests.servers.redis_server import RedisCluster, RedisServer

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


async def test_nobody_waits_again_for_a_redis_that_does_not_answer(redis: RedisServer) -> None:
    connection = RedisConnection(redis.url, "{tag}", "cluster.url")

    async def ask() -> float:
        """The seconds until it is said that there is no answer; -1 if there is one."""
        began = time.monotonic()
        try:
            async with connection.reached() as client:
                await client.get("{tag}:a")
        except StateUnavailable:
            return time.monotonic() - began
        return -1

    assert await ask() == -1
    redis.hang()
    assert 2 < await ask() < 5, "one waits for the time of an answer, and not twice"
    assert max([await ask() for _ in range(20)]) < 0.5
    redis.hang(ended=True)
    with anyio.fail_after(30):
        while await ask() >= 0:  # noqa: ASYNC110 - another process
            await anyio.sleep(0.1)
    redis.hang()
    await ask()
    redis.stop()
    await connection.close()

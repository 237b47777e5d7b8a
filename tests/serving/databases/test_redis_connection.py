"""Connections to a Redis that several users share, some of which fail."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from gateway.errors import StateUnavailable
from gateway.routing.replica_port import SharedLimit
from gateway.serving.cluster.shared_use import RedisUse
from gateway.serving.cluster.soon import Soon
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


@asynccontextmanager
async def answering(answer: bytes) -> AsyncGenerator[RedisConnection]:
    """A connection to what answers everything with the same bytes."""

    async def serve(stream: SocketStream) -> None:
        async with stream:
            async for said in stream:
                await stream.send(answer * said.count(b"*"))

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        port = listener.extra(SocketAttribute.local_port)
        connection = RedisConnection(f"redis://127.0.0.1:{port}/0", "{tag}", "cluster.url")
        yield connection
        await connection.close()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("answer", [b"*1\r\n" * 20_000, b"hello\r\n", b":x\r\n", b"$3\r\n\xff\xfe\xff\r\n"])
async def test_an_answer_that_no_redis_gives_is_an_error_of_the_redis(answer: bytes) -> None:
    async with answering(answer) as connection:
        with pytest.raises(StateUnavailable):
            async with connection.reached() as client:
                await client.get("{tag}:a")


@pytest.mark.parametrize(
    "answer", [b":5\r\n", b"+OK\r\n", b"*1\r\n:1\r\n", b"*2\r\n:9\r\n+1\r\n", b"*2\r\n:1\r\n+x\r\n"]
)
async def test_counts_that_cannot_be_read_are_an_error_of_the_redis(answer: bytes) -> None:
    async with answering(answer) as connection:
        use = RedisUse(connection, Soon(connection), "own", list[str], 10.0)
        with pytest.raises(StateUnavailable):
            await use.begin([SharedLimit("calls_per_minute", 5, ("token", "a"))])


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

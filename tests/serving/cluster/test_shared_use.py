"""Running calls that replicas count together in a real Redis, which may be away when one of them ends."""

from collections.abc import AsyncGenerator, Callable

import anyio
import pytest

from gateway.routing.replica_port import AT_ONCE, SharedLimit
from gateway.serving.cluster.keys import TAG
from gateway.serving.cluster.shared_use import RedisUse
from gateway.serving.cluster.soon import Soon
from gateway.serving.databases.redis_connection import RedisConnection
from tests.servers.redis_server import RedisServer

pytestmark = pytest.mark.anyio

LEASE = 2.0
TWO = SharedLimit(AT_ONCE, 2, ("principal", "alice"))
Make = Callable[..., tuple[RedisUse, Soon]]


@pytest.fixture
async def make(redis: RedisServer) -> AsyncGenerator[Make]:
    """Makes one of the replicas `one` and `two`, and what it writes with, to Redis or to another URL."""
    made: list[RedisConnection] = []

    def connect(url: str) -> RedisConnection:
        made.append(RedisConnection(url, TAG, "cluster.url"))
        return made[-1]

    def make(own: str, soon_at: str = redis.url) -> tuple[RedisUse, Soon]:
        soon = Soon(connect(soon_at))
        other = "two" if own == "one" else "one"
        return RedisUse(connect(redis.url), soon, own, lambda: [other], LEASE), soon

    yield make
    for each in made:
        await each.close()


async def test_calls_that_end_make_room_at_all_replicas(make: Make, redis: RedisServer) -> None:
    (one, soon), (two, _) = make("one", redis.url), make("two", redis.url)
    assert [await use.begin([TWO]) for use in (one, two)] == [None, None]
    refused = [await use.begin([TWO]) for use in (one, two)]
    assert [None if each is None else each.limit for each in refused] == [TWO, TWO]
    one.add(TWO, -1)
    await soon.rest()
    assert await two.begin([TWO]) is None


@pytest.mark.parametrize("kind", ["calls_per_minute", "requests_per_minute", "registrations_per_minute"])
async def test_what_is_counted_by_the_minute_is_counted_by_all_together(make: Make, kind: str) -> None:
    (one, _), (two, _) = make("one"), make("two")
    two_a_minute = SharedLimit(kind, 2, ("principal", "alice"))
    assert [await use.begin([two_a_minute]) for use in (one, two)] == [None, None]
    for use in (one, two):
        exceeded = await use.begin([two_a_minute])
        assert exceeded is not None
        assert 0 < exceeded.seconds <= 60


async def test_many_that_begin_at_once_are_all_counted(make: Make, redis: RedisServer) -> None:
    (one, _), (two, soon_of_two) = make("one", redis.url), make("two", redis.url)
    many = SharedLimit(AT_ONCE, 20, ("principal", "alice"))
    begun: list[bool] = []

    async def begin(use: RedisUse) -> None:
        begun.append(await use.begin([many]) is None)

    async with anyio.create_task_group() as tasks:
        for use in (one, two) * 20:
            tasks.start_soon(begin, use)
    assert 10 <= sum(begun) <= 20, "those that are refused may keep others from beginning for a moment"
    two.renew()
    await soon_of_two.rest()
    for _ in range(sum(begun), 20):
        assert await one.begin([many]) is None
    assert await one.begin([many]) is not None


async def test_an_end_that_could_not_be_said_is_not_counted_for_ever(make: Make, redis: RedisServer) -> None:
    (one, soon), (two, _) = make("one", "redis://127.0.0.1:1/0"), make("two", redis.url)
    for _ in range(2):
        assert await one.begin([TWO]) is None
        one.add(TWO, -1)
        await soon.rest()
        assert soon.has_dropped
    assert await one.begin([TWO]) is None, "it knows its own"
    assert await two.begin([TWO]) is None
    one.add(TWO, -1)
    await soon.rest()
    assert await two.begin([TWO]) is not None, "which the other cannot know yet"
    await anyio.sleep(LEASE + 1)
    assert await two.begin([TWO]) is None


async def test_what_runs_for_long_is_counted_as_long_as_it_is_said_again(make: Make, redis: RedisServer) -> None:
    (one, soon), (two, _) = make("one", redis.url), make("two", redis.url)
    for _ in range(2):
        assert await one.begin([TWO]) is None
    redis.stop()  # and with it what it had counted
    redis.start()
    one.renew()
    await soon.rest()
    assert await two.begin([TWO]) is not None
    for _ in range(3):
        await anyio.sleep(LEASE / 2)
        one.renew()
        await soon.rest()
    assert await two.begin([TWO]) is not None


async def test_what_happens_again_is_counted_by_all_until_it_has_not_for_a_while(
    make: Make, redis: RedisServer
) -> None:
    (one, _), (two, _) = make("one", redis.url), make("two", redis.url)
    assert [await use.repeated(("wrong", "1.2.3.4"), 1) for use in (one, two, one)] == [1, 2, 3]
    assert await two.repeated(("wrong", "1.2.3.5"), 1) == 1
    await anyio.sleep(1.5)
    assert await two.repeated(("wrong", "1.2.3.4"), 1) == 1

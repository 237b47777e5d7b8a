"""Connections to a Redis, or to a cluster of them: transactions, and what happens while it cannot be reached."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import anyio

from gateway.config.authorization_settings import CLUSTER_SCHEMES
from gateway.errors import ConfigError
from gateway.serving.databases.availability import Availability
from gateway.serving.databases.probe import Probe
from gateway.system.extras import install_extra

ResultT = TypeVar("ResultT")


_SECONDS = 3.0
"""Time for Redis to take a connection, and to answer."""
_HUNG_SECONDS = 1.0
"""A failure that took longer was one of a Redis that does not answer: nobody waits for it again until it does."""
_CONNECTIONS = 32
"""Maximum number of connections, to each node; beyond it, requests wait for one."""
_TRIES = 20
"""How often a transaction is tried before others that are faster."""
_LIMITS: Mapping[str, Any] = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}

_UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
"""Errors of redis-py, and of whoever reads, about answers of other types, or ones that nest without end."""

Pipe = Any
"""A pipeline of redis-py, whose commands have no types of their own there."""


class _Client:
    """A client of redis-py that is closed once it is given up and nobody uses it any more."""

    def __init__(self, redis: Any) -> None:
        self.redis = redis
        self._users = 0
        self._is_given_up = False

    @asynccontextmanager
    async def used(self) -> AsyncGenerator[Any]:
        """Context manager in which it stays open."""
        self._users += 1
        try:
            yield self.redis
        finally:
            self._users -= 1
            await self._close_if_unused()

    async def give_up(self) -> None:
        """Close it, at once or after its last use."""
        self._is_given_up = True
        await self._close_if_unused()

    async def _close_if_unused(self) -> None:
        if self._is_given_up and not self._users:
            with anyio.move_on_after(_SECONDS, shield=True):
                await self.redis.aclose()


class RedisConnection:
    """Connection to a URL: `redis://`, `rediss://` (TLS) or `unix://`; with `+cluster`, to any node of a cluster.

    All keys of a user of it begin with `tag`: what is in its braces decides on their slot. `where` is the configuration
    key of the URL.

    Raises:
        ConfigError: redis-py is not installed, or takes no such URL.
    """

    def __init__(self, url: str, tag: str, where: str, availability: Availability | None = None) -> None:
        self.in_cluster = url.startswith(CLUSTER_SCHEMES)
        self._url = url.replace("+cluster", "", 1) if self.in_cluster else url
        self._tag = tag
        self.availability = availability or Availability()
        self._finding = anyio.Lock()
        self._probe = Probe(self._ping)
        try:
            self._redis: _Client | None = None if self.in_cluster else self._client()
            self._cluster: Any = self._map() if self.in_cluster else None
        except ImportError:
            raise ConfigError(
                "needs a package that is not installed",
                where=where,
                remedy=f"install the extra redis: `{install_extra('redis')}`",
            ) from None
        except (ValueError, TypeError):
            raise ConfigError(
                "is not the URL of a Redis",
                where=where,
                remedy='write it as "redis://:PASSWORD@HOST:6379/0"; rediss:// is with TLS, redis+cluster:// a cluster',
            ) from None

    def _client(self, **where: Any) -> _Client:
        from redis.asyncio import BlockingConnectionPool, Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
        from redis.exceptions import ConnectionError as Broken

        once_more = Retry(NoBackoff(), 1, (Broken,))  # a connection that Redis has closed meanwhile is opened again
        pool: Any = cast("Any", BlockingConnectionPool).from_url(
            self._url, max_connections=_CONNECTIONS, timeout=_SECONDS, decode_responses=True, retry=once_more, **_LIMITS
        )
        pool.connection_kwargs.update(where)
        return _Client(cast("Any", Redis).from_pool(pool))  # which it closes

    def _map(self) -> Any:
        from redis.asyncio.cluster import RedisCluster

        return cast("Any", RedisCluster).from_url(self._url, **_LIMITS)

    async def _found(self) -> _Client:
        """Return the client; in a cluster, that of the node which has the keys.

        All of them are in one slot, and redis-py's client for clusters has no MGET in a transaction.
        """
        if self._redis is not None:
            return self._redis
        async with self._finding:
            if self._redis is None:  # nobody else has found it meanwhile
                await self._cluster.initialize()
                if (node := self._cluster.get_node_from_key(self._tag)) is None:
                    raise OSError("no node of the cluster has the keys")
                self._redis = self._client(host=node.host, port=node.port)
            return self._redis

    async def _look_again(self, failed: _Client | None) -> None:
        """Ask the cluster for its nodes again, the next time: the keys may be at another one now.

        Others may still use the client that has failed here, or have found another one meanwhile.
        """
        if self._cluster is None or self._redis is not failed:
            return
        self._redis = None
        if failed is not None:
            await failed.give_up()
        with anyio.move_on_after(_SECONDS, shield=True):
            async with self._finding:
                if self._redis is None:
                    await self._cluster.aclose()

    async def decided(self, decide: Callable[[Pipe], Awaitable[ResultT]], *watched: str) -> ResultT:
        """Run what reads, begins a transaction (`multi`) and fills it; again if a watched key has changed meanwhile."""
        from redis.exceptions import WatchError

        async with self.reached() as redis:
            for _ in range(_TRIES):
                async with redis.pipeline(transaction=True) as pipe:
                    try:
                        await pipe.watch(*watched)
                        result = await decide(pipe)
                        await pipe.execute()
                    except WatchError:
                        continue
                    return result
        raise self.availability.refusal("too much happens at once: try again")

    @asynccontextmanager
    async def reached(self) -> AsyncGenerator[Any]:
        """Context manager in which failures of Redis are StateUnavailable; the log says once that it is away.

        Once somebody has waited for a Redis that does not answer, it is away at once for everybody, until it answers.
        """
        if self._probe.is_asking:
            raise self.availability.refusal("try again in a moment; the log says why")
        async with self._asked() as redis:
            yield redis

    @asynccontextmanager
    async def _asked(self) -> AsyncGenerator[Any]:
        from redis.exceptions import RedisClusterException, RedisError, WatchError

        client: _Client | None = None
        began = time.monotonic()
        try:
            client = await self._found()
            async with client.used() as redis:
                yield redis
        except WatchError:
            raise
        except (RedisError, RedisClusterException, OSError, TimeoutError) as error:
            if time.monotonic() - began >= _HUNG_SECONDS:
                self._probe.begin()
            await self._look_again(client)
            raise self.availability.lost(str(error)) from error
        except _UNREADABLE as error:
            raise self.availability.lost("it has something that no gateway of this version has written") from error
        self.availability.found()

    async def _ping(self) -> None:
        async with self._asked() as redis:
            await redis.ping()

    def check(self) -> None:
        """Look whether Redis answers. If it does not, the gateway starts, and answers 503 until it does."""
        from redis import Redis, RedisCluster
        from redis.exceptions import RedisClusterException, RedisError

        try:
            with cast("Any", RedisCluster if self.in_cluster else Redis).from_url(self._url, **_LIMITS) as redis:
                redis.ping()
        except (RedisError, RedisClusterException, OSError) as error:
            self.availability.lost(str(error))

    async def close(self) -> None:
        """Close the connections; the next use opens them again."""
        await self._probe.stop()
        client = self._redis
        if client is not None and self._cluster is None:
            with anyio.move_on_after(_SECONDS, shield=True):
                await client.redis.aclose()
        await self._look_again(client)

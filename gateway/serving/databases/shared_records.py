"""Protocol for the records that several gateways share: in a Redis for a cluster, in a file for one machine."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from gateway.serving.databases.availability import Availability

ResultT = TypeVar("ResultT")

Pipe = Any
"""A pipeline of redis-py, whose commands have no types of their own there, or what is used in place of one."""


class SharedRecords(Protocol):
    """Records by key, with the commands of redis-py (`RedisConnection`, `LocalRecords`)."""

    @property
    def availability(self) -> Availability: ...

    def reached(self) -> AbstractAsyncContextManager[Any]:
        """Context manager that gives the commands; failures in it are StateUnavailable, which the log says once."""
        ...

    async def decided(self, decide: Callable[[Pipe], Awaitable[ResultT]], *watched: str) -> ResultT:
        """Run what reads, begins a transaction (`multi`) and fills it; again if a watched key has changed meanwhile."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...

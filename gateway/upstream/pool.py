"""All upstreams together: each connected by its own task, none in another's way."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup

from gateway.config.schema import UpstreamSettings
from gateway.upstream.upstream import OnChange, Upstream, UpstreamState

if TYPE_CHECKING:
    from gateway.upstream.opening import Identity

STOP_GRACE = 12.0
"""Seconds for all upstreams together to be left in good order when the gateway ends."""


class Upstreams(Mapping[str, Upstream]):
    """The upstreams by name, in the order of the configuration. Entering begins to connect to all, waiting for none.

    To be entered and left by one task. Leaving ends every connection and every process, also when it is cancelled.
    """

    def __init__(
        self,
        settings: Mapping[str, UpstreamSettings],
        *,
        on_change: OnChange,
        identity: "Identity | None" = None,
    ) -> None:
        self._members = {
            name: Upstream(name, one, on_change=on_change, identity=identity) for name, one in settings.items()
        }
        self._tasks: TaskGroup | None = None
        self._stopped = anyio.Event()

    def __getitem__(self, name: str) -> Upstream:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._own_all)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None
        for upstream in self._members.values():
            upstream.stop()
        with anyio.move_on_after(STOP_GRACE, shield=True):
            await self._stopped.wait()
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    async def settled(self, timeout: float) -> bool:
        """Wait until no upstream is starting, at most `timeout` seconds; whether that is so."""
        with anyio.move_on_after(timeout):
            for upstream in self._members.values():
                await upstream.ready(timeout)
        return all(upstream.state is not UpstreamState.STARTING for upstream in self._members.values())

    async def _own_all(self) -> None:
        try:
            async with anyio.create_task_group() as owners:
                for upstream in self._members.values():
                    owners.start_soon(upstream.run, name=f"upstream {upstream.name}")
        finally:
            self._stopped.set()

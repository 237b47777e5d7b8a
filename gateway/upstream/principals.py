"""The upstreams of principals: where each has to log in, each has connections and lists of its own."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import anyio

MOST = 256
"""The number of principals with connections to one upstream above which unused ones are stopped."""

_LOOKS = 60.0
"""The maximum seconds between two searches for those that are not used any longer."""


class Stoppable(Protocol):
    """An upstream that can be stopped while it is not busy."""

    @property
    def is_busy(self) -> bool: ...
    def stop(self) -> None: ...


UpstreamT = TypeVar("UpstreamT", bound=Stoppable)


class PrincipalUpstreams(Generic[UpstreamT]):
    """The upstream as each principal has it, except for the one that the upstream itself belongs to.

    `make` makes the upstream of a principal, and `begin` starts it. One that is not used for a while is stopped; so is
    the least recently used one if there are too many.
    """

    def __init__(self, make: Callable[[str], UpstreamT], begin: Callable[[UpstreamT], None], most: int = MOST) -> None:
        self._make = make
        self._begin = begin
        self._most = most
        self._members: OrderedDict[str, UpstreamT] = OrderedDict()
        self._last_use: dict[str, float] = {}

    def __iter__(self) -> Iterator[UpstreamT]:
        return iter(tuple(self._members.values()))

    def of(self, principal: str) -> UpstreamT:
        """Return the upstream of a principal, started if necessary."""
        member = self._members.get(principal)
        if member is None:
            if len(self._members) >= self._most and (unused := next(self._unused(), None)) is not None:
                self.drop(unused)
            member = self._members[principal] = self._make(principal)
            self._begin(member)
        self._members.move_to_end(principal)
        self._last_use[principal] = anyio.current_time()
        return member

    def find(self, principal: str) -> UpstreamT | None:
        """Return the upstream of a principal, if it is there."""
        return self._members.get(principal)

    def drop(self, principal: str) -> None:
        """Stop the upstream of a principal, and forget its lists."""
        member = self._members.pop(principal, None)
        self._last_use.pop(principal, None)
        if member is not None:
            member.stop()

    async def expire(self, seconds: Callable[[], float]) -> None:
        """Run forever, and stop those that were not used for `seconds`."""
        while True:
            await anyio.sleep(min(_LOOKS, seconds() / 4))
            before = anyio.current_time() - seconds()
            for principal in [each for each in self._unused() if self._last_use[each] < before]:
                self.drop(principal)

    def _unused(self) -> Iterator[str]:
        """The principals without a running call, the least recently used first."""
        return (principal for principal, member in self._members.items() if not member.is_busy)

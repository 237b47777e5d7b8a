"""The other replicas as routing needs them, if the gateway is one of several (`gateway.serving.cluster`)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gateway.core.model.caller import Caller

OwnerFor = Callable[[str, Caller], str | None]
"""Returns the owner of the state that a caller's calls to an upstream act on; None if it keeps none for anybody."""


AT_ONCE = "calls_at_once"
"""The limit of running calls, which end; the others count what has been."""


class SharedLimit(NamedTuple):
    """A limit that all replicas count together: its kind (a name in `Quota`, say), the maximum, and for whom."""

    kind: str
    most: int
    who: tuple[str, str]


class Exceeded(NamedTuple):
    """A limit that has been reached, and the seconds until it may not be any more."""

    limit: SharedLimit
    seconds: float


class CallElsewhere(NamedTuple):
    """A long call of another replica: its outcome (`kept_outcome`), if it has ended, or whether it still runs there."""

    outcome: Mapping[str, Any] | None
    is_running: bool


class SharedUse(Protocol):
    """The use that callers have made of their limits at all replicas together."""

    async def begin(self, limits: Sequence[SharedLimit]) -> Exceeded | None:
        """Count a call against all of the limits; or against none, and return one that has been reached.

        Raises:
            StateUnavailable: nobody knows at present.
        """
        ...

    def add(self, limit: SharedLimit, amount: int) -> None:
        """Count more, soon: what a call has cost; for `calls_at_once`, -1 when it has ended."""
        ...

    async def repeated(self, what: tuple[str, str], seconds: float) -> int:
        """Count that something has happened again, and return how often it did, with no longer than that in between.

        Raises:
            StateUnavailable: nobody knows at present.
        """
        ...

    def renew(self) -> None:
        """Say again, soon, how many calls run here: the others may not have heard it. To be called now and then."""
        ...


class ReplicaPort(Protocol):
    """This replica among the others: `own` is its id."""

    @property
    def own(self) -> str: ...
    @property
    def use(self) -> SharedUse: ...

    def state_key(self) -> bytes:
        """Return the key with which all replicas sign `requestState`."""
        ...

    async def before_call(self, upstream: str, owner: str) -> None:
        """Note that a call is made to an upstream that keeps state for its owner.

        Raises:
            UpstreamUnavailable: the replica that had this state is gone. It is raised once.
        """
        ...

    def task_given(self, client: str, task: str, route: Mapping[str, str]) -> None:
        """Note where a task, or a long call, is that a client was given here.

        `route` is what a replica needs to find it elsewhere; empty, if only this one has it.
        """
        ...

    async def told(self) -> None:
        """Wait until the others can know what was noted, or nobody can: a host may ask any of them at once."""
        ...

    async def route_of_task(self, client: str, task: str) -> Mapping[str, str] | None:
        """Return the route of a task that a client was given at any replica, if every one can find it.

        Raises:
            StateUnavailable: nobody knows at present.
        """
        ...

    def call_ended(self, client: str, call: str, outcome: Mapping[str, Any], seconds: float) -> None:
        """Keep the outcome of a long call for so long, for the case that this replica is gone by then."""
        ...

    def call_forgotten(self, client: str, call: str) -> None:
        """Forget a long call."""
        ...

    async def call_elsewhere(self, client: str, call: str) -> CallElsewhere | None:
        """Return what is known of a long call of a client at another replica; None if there is none.

        Raises:
            StateUnavailable: nobody knows at present.
        """
        ...

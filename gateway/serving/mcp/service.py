"""Protocol for what the MCP server needs of the gateway behind it."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gateway.admission.admission import Admission
from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.upstream import Host

ProgressCallback = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called with progress, total and message, as in `notifications/progress`."""

SERVED = frozenset(
    {
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "skills/list",
        "skills/get",
        "resources/directory/read",
    }
)
"""The methods that are passed to `Service.respond`; all others belong to the protocol itself."""

OF_TASKS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
"""Methods of the tasks extension, also passed for hosts of 2026-07-28."""


class WaitingPort(Protocol):
    """Requests for lists that wait for upstreams (`gateway.routing.availability.WaitingLists`)."""

    @property
    def number(self) -> int: ...
    def end(self) -> None: ...


class Service(Protocol):
    """The gateway behind the transports (implemented by `gateway.routing.Router`). Runs on the event loop."""

    @property
    def admission(self) -> Admission:
        """Admits requests, or refuses them while there are too many."""
        ...

    async def respond(
        self,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        on_progress: ProgressCallback | None = None,
        host: Host | None = None,
        waited: float = 0.0,
    ) -> dict[str, Any]:
        """Return the raw result of a `SERVED` method. Raises `GatewayError`; cancelled when the host cancels.

        `params` have been validated. `on_progress` is given if the host asked for progress; `host` is the channel for
        an upstream's requests and notifications meanwhile. `waited` is the number of seconds since the request arrived,
        for instance while the gateway was still being imported.
        """
        ...

    async def watch(self, uri: str, caller: Caller) -> Callable[[], None]:
        """Notify listeners with `updated:<uri>` when this resource changes. Return a function that ends this.

        Raises `GatewayError` if there is no such resource.
        """
        ...

    def hears(self, caller: Caller, change: Change) -> bool:
        """Whether this host is to be notified of a change: of what exists for it, if it acts on such notifications."""
        ...

    def toolsets_in_force(self, caller: Caller) -> tuple[str, ...]:
        """Return the toolsets of a caller, with that of the project that it has open, if it has said which."""
        ...

    def knows_upstreams(self, caller: Caller) -> bool:
        """Whether something is known of every upstream of this caller that is starting: it has been there before."""
        ...

    async def roots_changed(self, session: str) -> None:
        """Tell the upstreams that the roots of this session's host have changed."""
        ...

    def attending(self, host: str) -> AbstractContextManager[None]:
        """Context manager to hold while the host (`gateway.upstream.connection.owners.host_of`) has anything open."""
        ...

    def left(self, session: str) -> None:
        """Release everything that belongs to a session whose host has disconnected."""
        ...

    @property
    def waiting_lists(self) -> WaitingPort:
        """The requests for lists that wait for upstreams."""
        ...

    async def long_calls_ended(self) -> None:
        """Wait until no call runs whose request has been answered."""
        ...

    def header_schema(self, name: str, caller: Callable[[], Caller]) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that the caller is offered under this name and that declares headers.

        Does not wait; returns None if there is no such tool. `caller` is only called if some tool with this name
        declares headers.
        """
        ...

    async def check_scopes(self, params: Mapping[str, Any], caller: Caller) -> None:
        """Refuse a call of a tool, and record that, if it needs scopes that the token lacks; `params` are the call's.

        Does not wait for upstreams; a tool that is not known at once is checked by `respond`.

        Raises:
            ScopeMissing: it does.
            AuditUnavailable: it does, but this cannot be recorded.
        """
        ...

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener` when a list or a watched resource changes. Return a function to stop it."""
        ...

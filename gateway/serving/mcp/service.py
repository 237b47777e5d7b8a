"""What the side of the hosts needs of the gateway behind it."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gateway.core.model.caller import Caller
from gateway.upstream import Host

ProgressCallback = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes progress, total and message, as `notifications/progress` has them."""

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
    }
)
"""The methods that are passed to `Service.respond`; everything else is the protocol's own business."""

OF_TASKS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
"""Also passed, for hosts of 2026-07-28: the extension of tasks."""


class Service(Protocol):
    """The gateway behind the transports (`gateway.routing.Router` is one). All on the event loop."""

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
        """The raw result of one of the `SERVED` methods. Raises `GatewayError`; cancelled when the host cancels.

        `params` are checked for their form. `on_progress` is given when the host asked for progress; `host` is whom an
        upstream may ask and tell meanwhile. `waited` are the seconds that the request has waited since it came, as it
        does while the gateway is still being imported.
        """
        ...

    async def watch(self, uri: str, caller: Caller) -> Callable[[], None]:
        """Have listeners told `updated:<uri>` when this resource changes; returns how to stop it.

        Raises `GatewayError` when there is no such resource.
        """
        ...

    def hears(self, caller: Caller, kind: str) -> bool:
        """Whether this host makes anything of being told that its "tools", "prompts" or "resources" have changed."""
        ...

    async def roots_changed(self, session: str) -> None:
        """The host of this session says that its roots are others."""
        ...

    def attending(self, host: str) -> AbstractContextManager[None]:
        """While this is open, the host (`gateway.upstream.connection.owners.host_of`) has something open here."""
        ...

    def left(self, session: str) -> None:
        """The host of this session is gone."""
        ...

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool by the name it is offered under, at once; None when there is no such tool."""
        ...

    def subscribe(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with "tools", "prompts" or "resources" when that list has changed; returns how to stop it.

        With `updated:<uri>` when a resource has changed that somebody watches.
        """
        ...

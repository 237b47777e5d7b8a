"""What the console needs of the gateway that it shows."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from gateway.config.schema import Settings
from gateway.config.settings_diff import Difference
from gateway.core.model.effects import MediaWork

if TYPE_CHECKING:
    from gateway.content.shaping import Shaper
    from gateway.content.store import KeptStore
    from gateway.routing import Router
    from gateway.routing.calibration import Calibration
    from gateway.upstream import Upstreams

Report = Callable[[], Awaitable[dict[str, Any]]]
"""Returns the status of the gateway, as `mcp-gateway status --json` shows it."""


class ShownGateway(Protocol):
    """The gateway (implemented by `gateway.runtime.Gateway`)."""

    @property
    def router(self) -> "Router": ...
    @property
    def upstreams(self) -> "Upstreams": ...
    @property
    def settings(self) -> Settings: ...
    @property
    def calibration(self) -> "Calibration": ...
    @property
    def store(self) -> "KeptStore": ...
    @property
    def media(self) -> MediaWork: ...
    def apply(self, settings: Settings) -> Difference:
        """Apply settings, and read the user's own profiles again."""
        ...

    def preview(self) -> "Shaper":
        """Return a shaper that stores nothing where anybody else would find it."""
        ...

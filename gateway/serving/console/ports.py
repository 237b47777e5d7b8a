"""What the console needs of the gateway that it shows."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gateway.config.schema import Settings
from gateway.config.settings_diff import Difference
from gateway.core.model.caller import Caller
from gateway.core.model.effects import MediaWork
from gateway.errors import ConfigError

if TYPE_CHECKING:
    from gateway.content.shaping import Shaper
    from gateway.content.store import KeptStore
    from gateway.routing import Router
    from gateway.routing.calibration import Calibration
    from gateway.telemetry.audit.trail import AuditTrail
    from gateway.upstream import Upstreams
    from gateway.upstream.authorization.login_desk import LoginDesk
    from gateway.upstream.pins import Pins

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
    @property
    def pins(self) -> "Pins": ...
    @property
    def audit(self) -> "AuditTrail | None": ...
    @property
    def login_desk(self) -> "LoginDesk": ...
    async def log_out(self, upstream: str, principal: str) -> None:
        """Revoke and forget a login. Raises InvalidRequest or UpstreamError."""
        ...

    def apply(self, settings: Settings) -> Difference:
        """Apply settings, and read the user's own profiles again."""
        ...

    def preview(self) -> "Shaper":
        """Return a shaper that stores nothing where anybody else would find it."""
        ...


async def _no_file() -> dict[str, Any]:
    raise ConfigError("this gateway was started without a configuration file")


def _no_log(_: int) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Operation:
    """How the gateway is run: its configuration file, and whose the content of its own hosts is.

    `reload` reads the file again and returns the changes (`gateway.config.settings_diff.Difference`, as JSON). It
    raises ConfigError or ProfileError if the file is refused. `log_lines` reads the newest lines of the log; it blocks.
    """

    config: Path | None = None
    principal: str = Caller().principal
    reload: Callable[[], Awaitable[dict[str, Any]]] = _no_file
    log_lines: Callable[[int], Sequence[str]] = _no_log

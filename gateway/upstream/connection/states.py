"""Where an upstream can stand, and what to do about it."""

from collections.abc import Mapping
from enum import StrEnum


class UpstreamState(StrEnum):
    """Where an upstream stands; `Upstream.cause` says why, in words."""

    STARTING = "starting"
    INSTALLING = "installing"
    """It is starting, and its launcher (`npx`, `uvx`, `docker run`, ...) may have to install it first."""
    READY = "ready"
    FAILED = "failed"
    SLEEPING = "sleeping"
    STOPPED = "stopped"
    DISABLED = "disabled"

    @property
    def is_pending(self) -> bool:
        """Whether it is not known yet how the start will end."""
        return self in (UpstreamState.STARTING, UpstreamState.INSTALLING)


REMEDIES: Mapping[UpstreamState, str] = {
    UpstreamState.STARTING: "try again in a moment",
    UpstreamState.INSTALLING: "try again when it is installed: mcp-gateway status shows it",
    UpstreamState.READY: "try again",
    UpstreamState.SLEEPING: "try again in a moment",
    UpstreamState.FAILED: (
        "the gateway goes on trying; see upstreams.{name} in the configuration, or run mcp-gateway doctor"
    ),
    UpstreamState.DISABLED: "set upstreams.{name}.enabled = true in the configuration",
    UpstreamState.STOPPED: "start the gateway again",
}
"""What to do about a state whose cause brings no remedy of its own; `{name}` is the upstream's."""

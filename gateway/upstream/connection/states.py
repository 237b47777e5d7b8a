"""The states of an upstream, and what to do about each."""

from collections.abc import Mapping
from enum import StrEnum


class UpstreamState(StrEnum):
    """The state of an upstream; `Upstream.cause` explains it in words."""

    STARTING = "starting"
    INSTALLING = "installing"
    """The upstream is starting, and its launcher (`npx`, `uvx`, `docker run`, ...) may have to install it first."""
    READY = "ready"
    FAILED = "failed"
    SLEEPING = "sleeping"
    STOPPED = "stopped"
    DISABLED = "disabled"

    @property
    def is_pending(self) -> bool:
        """Whether the outcome of the start is still unknown."""
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
"""What to do about each state if the cause has no remedy of its own; `{name}` is the upstream's name."""

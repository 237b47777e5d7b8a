"""The states of an upstream, and what to do about each."""

from collections.abc import Mapping
from enum import StrEnum

from gateway.errors import Failure


class UpstreamState(StrEnum):
    """The state of an upstream; `Upstream.cause` is the reason in words, and `Upstream.failure` the failure, if any."""

    STARTING = "starting"
    INSTALLING = "installing"
    """The upstream is starting, and its launcher (`npx`, `uvx`, `docker run`, ...) may have to install it first."""
    READY = "ready"
    FAILED = "failed"
    LOGIN = "login"
    """The upstream waits until its principal has logged in."""
    SLEEPING = "sleeping"
    STOPPED = "stopped"
    DISABLED = "disabled"

    @property
    def is_pending(self) -> bool:
        """Whether the outcome of the start is still unknown."""
        return self in (UpstreamState.STARTING, UpstreamState.INSTALLING)


_REMEDIES: Mapping[UpstreamState, str] = {
    UpstreamState.STARTING: "try again in a moment",
    UpstreamState.INSTALLING: "try again when it is installed: mcp-gateway status shows it",
    UpstreamState.READY: "try again",
    UpstreamState.SLEEPING: "try again in a moment",
    UpstreamState.LOGIN: "mcp-gateway login {name}",
    UpstreamState.FAILED: (
        "the gateway keeps trying; see upstreams.{name} in the configuration, or run mcp-gateway doctor"
    ),
    UpstreamState.DISABLED: "set upstreams.{name}.enabled = true in the configuration",
    UpstreamState.STOPPED: "the gateway is stopping: start it again",
}


def what_to_do(name: str, state: UpstreamState, failure: Failure | None) -> str:
    """Return the remedy for an upstream that is not available: that of its failure, or else that of its state."""
    own = failure.remedy if failure is not None else None
    return own or _REMEDIES[state].format(name=name)

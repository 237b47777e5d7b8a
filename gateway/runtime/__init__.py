"""The composition root: the one place that builds the edges and wires them together."""

from gateway.runtime.gateway import Gateway, open_gateway, run_gateway
from gateway.runtime.logins import open_logins

__all__ = ["Gateway", "open_gateway", "open_logins", "run_gateway"]

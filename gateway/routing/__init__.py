"""A host's request to whoever can answer it: names to upstreams, calls, results shaped, resources merged."""

from gateway.routing.router import Listener, Router

__all__ = ["Listener", "Router"]

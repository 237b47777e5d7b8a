"""Route hosts' requests to upstreams: resolve names, make calls, shape results and merge lists."""

from gateway.routing.router import Listener, Router

__all__ = ["Listener", "Router"]

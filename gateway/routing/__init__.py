"""Route hosts' requests to upstreams: resolve names, make calls, shape results and merge lists."""

from gateway.routing.change_notifications import Listener
from gateway.routing.router import Router

__all__ = ["Listener", "Router"]

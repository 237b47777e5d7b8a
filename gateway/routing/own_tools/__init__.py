"""The gateway's own tools, as one upstream in process: looking at kept images, reading kept texts and any resource."""

from gateway.routing.own_tools.server import Builtin

__all__ = ["Builtin"]

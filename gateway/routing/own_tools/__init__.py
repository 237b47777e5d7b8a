"""The gateway's own tools as an in-process upstream: view images, read texts and resources, keep content."""

from gateway.routing.own_tools.server import OwnToolsServer

__all__ = ["OwnToolsServer"]

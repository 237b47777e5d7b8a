"""The gateway's own tools, as one upstream in process: looking at kept images, reading kept texts and any resource."""

from gateway.builtin.reading import ReadResource
from gateway.builtin.server import Builtin

__all__ = ["Builtin", "ReadResource"]

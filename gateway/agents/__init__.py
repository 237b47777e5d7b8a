"""API for agent loops: offer a gateway's tools in a model API's format, and turn completions into the next messages."""

from gateway.agents.responded import Responded, ToolResult
from gateway.agents.toolset import OpenGateway, Toolset

__all__ = ["OpenGateway", "Responded", "ToolResult", "Toolset"]

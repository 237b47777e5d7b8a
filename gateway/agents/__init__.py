"""The agent-loop API: a gateway's tools in a model API's format, a completion in, the next messages out."""

from gateway.agents.responded import Responded, ToolResult
from gateway.agents.toolset import OpenGateway, Toolset

__all__ = ["OpenGateway", "Responded", "ToolResult", "Toolset"]

"""API for agent loops: offer a gateway's tools in a model API's format, and turn completions into the next messages."""

from gateway.agents.approval import ApprovalRequest, OnApproval
from gateway.agents.responded import Responded, ToolResult
from gateway.agents.toolset import OpenGateway, Toolset

__all__ = ["ApprovalRequest", "OnApproval", "OpenGateway", "Responded", "ToolResult", "Toolset"]

"""API for agent loops: offer a gateway's tools in a model API's format, and turn completions into the next messages."""

import logging

from gateway.agents.approval import ApprovalRequest, OnApproval
from gateway.agents.responded import Responded, ToolResult
from gateway.agents.toolset import OpenGateway, Toolset

__all__ = ["ApprovalRequest", "OnApproval", "OpenGateway", "Responded", "ToolResult", "Toolset"]

# A library's errors are raised, and its log is for the program that configures one: nothing of it goes to stderr.
logging.getLogger("gateway").addHandler(logging.NullHandler())

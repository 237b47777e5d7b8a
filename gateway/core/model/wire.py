"""JSON as it travels: parsed, never validated against an SDK's models, never written to."""

from collections.abc import Mapping
from typing import Any, TypeAlias

WireObject: TypeAlias = Mapping[str, Any]
"""A JSON object as it arrived, or as it is to be sent."""

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Of `notifications/message` (RFC 5424), the least first."""

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

OF_ONE_HOP = frozenset(
    {PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, SUBSCRIPTION_ID, "progressToken"}
)
"""The `_meta` keys of a request that belong to one connection and mean nothing on the next."""

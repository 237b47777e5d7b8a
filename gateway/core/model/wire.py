"""JSON as it is sent and received: parsed, never validated against an SDK's models, never modified."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from gateway.core.model.json_values import is_object

WireObject: TypeAlias = Mapping[str, Any]
"""A JSON object as it arrived, or as it will be sent."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002
"""Used up to 2025-11-25; 2026-07-28 uses INVALID_PARAMS instead."""
UNKNOWN_RESOURCE = frozenset({RESOURCE_NOT_FOUND, INVALID_PARAMS, METHOD_NOT_FOUND})
"""Errors that servers return for an unknown URI: the last one if they have no resources at all."""
OVERLOADED = -32011
"""The gateway, or one of its upstreams, can take no more for now; the data has `retryAfter` in seconds."""
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
"""A request needs a capability of the host that it does not declare; the data names it (2026-07-28)."""
UNSUPPORTED_PROTOCOL_VERSION = -32022

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of `notifications/message` (RFC 5424), lowest first."""

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
"""The notification that begins the stream of a subscription."""
SERVER_INFO = "io.modelcontextprotocol/serverInfo"

TASK_ID = "taskId"
"""The param of `tasks/*` that names the task, and that the header `Mcp-Name` repeats (SEP-2663)."""

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""The extension of servers that have skills (https://modelcontextprotocol.io/seps/2640-skills-extension)."""

OF_ONE_HOP = frozenset(
    {PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES, LOG_LEVEL, SUBSCRIPTION_ID, "progressToken"}
)
"""The `_meta` keys of a request that belong to one connection and mean nothing on the next."""


def text_result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    """Return the result of a tool that consists of a text."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    return {**result, "isError": True} if is_error else result


def strip_hop_meta(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the params of a request without what belongs to the host's own connection.

    Everything else in `_meta` stays (trace context, what a host says about the call); an empty `_meta` is removed.
    """
    kept = dict(params or {})
    meta = kept.pop("_meta", None)
    if is_object(meta):
        passed = {key: value for key, value in meta.items() if key not in OF_ONE_HOP}
        if passed:
            kept["_meta"] = passed
    return kept

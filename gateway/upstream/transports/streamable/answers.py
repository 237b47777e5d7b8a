"""Answers to requests: recognising them among the messages of a response, and what they say."""

from typing import Any, TypeGuard

from mcp.shared.dispatcher import as_request_id, coerce_request_id
from mcp_types import ErrorData, JSONRPCError, JSONRPCMessage, JSONRPCResponse, RequestId

from gateway.core.model.json_values import is_dict
from gateway.upstream.transports.causes import NotMcp
from gateway.upstream.transports.messages import failure_in

Outcome = dict[str, Any] | ErrorData
"""A result, or the upstream's error."""

NO_MESSAGE = "answered with something that is not a JSON-RPC message"


def result_in(value: Any, key: RequestId | None) -> dict[str, Any] | None:
    """Return the result if a value is a sound response, to the request with this `key` (None: to any)."""
    if not is_dict(value) or "method" in value or "error" in value or value.get("jsonrpc") != "2.0":
        return None
    request_id, result = as_request_id(value.get("id")), value.get("result")
    if request_id is None or not is_dict(result) or (key is not None and coerce_request_id(request_id) != key):
        return None
    return result


def is_answer(message: JSONRPCMessage, key: RequestId, *, any_id: bool) -> TypeGuard[JSONRPCResponse | JSONRPCError]:
    """Whether a message is the response to a request, or something unusable in its place."""
    if isinstance(message, JSONRPCError):
        return any_id or message.id is None or coerce_request_id(message.id) == key or _is_unusable(message)
    return isinstance(message, JSONRPCResponse) and (any_id or coerce_request_id(message.id) == key)


def outcome_of(message: JSONRPCResponse | JSONRPCError) -> Outcome:
    """Return what an answer says. Raises NotMcp if it is unusable."""
    if isinstance(message, JSONRPCResponse):
        return message.result
    if _is_unusable(message):
        raise NotMcp(NO_MESSAGE)
    return message.error


def _is_unusable(message: JSONRPCError) -> bool:
    return failure_in(message.error) is not None

"""JSON-RPC messages to bytes and back, for the transports that are our own (stdio and legacy SSE).

Results are kept as parsed JSON: nothing below the JSON-RPC envelope is validated here. A message that cannot be used
costs itself; when it still tells which request it answers, that request fails at once instead of waiting for its limit.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, cast

from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from gateway.upstream.failures import NotMcp

_LEADING_ID = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)\s*,\s*"(?:result|error)"')
_CLOSING_ID = re.compile(rb'[,{]\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def read_messages(data: bytes | str) -> list[SessionMessage]:
    """The messages in one line or event: one, or several in a batch (which 2025-03-26 allows).

    Raises NotMcp when it is no JSON-RPC at all.
    """
    try:
        value = _json(data)
    except (ValueError, RecursionError) as error:
        raise NotMcp("wrote something that is no JSON") from error
    batch = cast("Iterable[object]", value) if isinstance(value, list) else (value,)
    messages = [SessionMessage(message) for item in batch if (message := _message(item)) is not None]
    if not messages:
        raise NotMcp("wrote something that is no JSON-RPC message")
    return messages


def write_message(message: JSONRPCMessage) -> bytes:
    """One message as JSON on one line, without the line end."""
    fields = message.model_dump(by_alias=True, exclude_unset=True)
    try:
        return to_json(fields, inf_nan_mode="null")
    except PydanticSerializationError:  # half of a surrogate pair, which only an escape can carry
        return json.dumps(fields).encode("ascii")


def failed_answer(request_id: str | int, failure: Exception) -> SessionMessage:
    """An answer made up in place of one that could not be read; `failure_in` gives the failure back."""
    error = ErrorData(code=PARSE_ERROR, message=str(failure), data=failure)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def failure_in(error: ErrorData) -> Exception | None:
    """The failure of a `failed_answer`. What an upstream sends is JSON, so it cannot forge one."""
    return error.data if isinstance(error.data, Exception) else None


def answered_id(head: bytes, tail: bytes) -> int | None:
    """Which request a message too long to be read answers, from its first and last bytes; None if they do not tell."""
    found = _LEADING_ID.match(head) or _CLOSING_ID.search(tail)
    return int(found.group(1)) if found else None


def _json(data: bytes | str) -> Any:
    try:
        return from_json(data)
    except ValueError:
        # Lone surrogates and wrong UTF-8 are the upstream's fault, but cost it only those characters.
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        return json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))


def _message(value: object) -> JSONRPCMessage | None:
    try:
        return jsonrpc_message_adapter.validate_python(value)
    except ValidationError:
        answer = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        request_id = answer.get("id")
        if "method" in answer or isinstance(request_id, bool) or not isinstance(request_id, int | str):
            return None
        return failed_answer(request_id, NotMcp("answered with something that is no JSON-RPC response")).message

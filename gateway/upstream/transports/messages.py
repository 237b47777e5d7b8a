"""Read and write JSON-RPC messages, for the gateway's own transports.

Results are kept as parsed JSON: nothing below the JSON-RPC envelope is validated here. An unusable message is dropped;
if it can still be matched to a request, that request fails at once instead of waiting for its limit.
"""

import json
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json, to_json

from gateway.core.model.json_safe import is_finite, read_leniently, to_json_safe
from gateway.core.model.json_shape import may_be_deep
from gateway.core.model.json_size import MANY_VALUES, size_of
from gateway.core.model.json_text import has_more_values
from gateway.core.model.json_values import as_object, is_dict, is_list
from gateway.upstream.transports.causes import NotMcp, TooManyValues

logger = logging.getLogger(__name__)

_SMALL = 64 * 1024
_NOTHING = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
"""A message without meaning."""

MOST_IN_BATCH = 1_000
"""The maximum number of messages in a batch: each takes a hundred times as much in memory as on the wire."""

TOO_MANY_VALUES = f"[left out: more than {MANY_VALUES:,} values]"
"""The text in place of a value in a notification or an error: neither is data that anyone works with."""

_LEADING_ID = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)\s*,\s*"(?:result|error)"')
_CLOSING_ID = re.compile(rb'[,{]\s*"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


def read_messages(data: bytes | str) -> list[SessionMessage]:
    """Read the messages in one line or event: one, or several in a batch (which 2025-03-26 allows).

    Raises NotMcp if it is not JSON-RPC at all, and TooManyValues.
    """
    return [SessionMessage(message) for message in messages_in(read_json(data))]


def read_json(data: bytes | str) -> Any:
    """Parse a line, an event or a body. Raises NotMcp if it is not JSON, and TooManyValues."""
    if has_more_values(data):
        raise TooManyValues
    try:
        return _json(data)
    except (ValueError, RecursionError) as error:
        raise NotMcp("wrote something that is not JSON") from error


def messages_in(value: Any) -> list[JSONRPCMessage]:
    """Return the messages in a JSON value: one, or several in a batch. Raises NotMcp if there are none."""
    batch = value if is_list(value) else [value]
    if len(batch) > MOST_IN_BATCH:
        raise NotMcp(f"wrote a batch of more than {MOST_IN_BATCH} messages")
    messages = [message for item in batch if (message := _message(item)) is not None]
    if not messages:
        raise NotMcp("wrote something that is not a JSON-RPC message")
    return messages


def write_message(message: JSONRPCMessage) -> bytes:
    """Write a message as JSON on one line, without the line end. Never raises; see `write_fields`."""
    with suppress(Exception):  # `write_fields` is more tolerant
        # Like `model_dump_json`, but without decoding the bytes and encoding them again.
        return message.__pydantic_serializer__.to_json(message, by_alias=True, exclude_unset=True)
    return write_fields(message.model_dump(by_alias=True, exclude_unset=True))


def write_fields(fields: Mapping[str, Any]) -> bytes:
    """Write the members of one JSON-RPC message as JSON on one line. Never raises, whatever is in them.

    Half of a surrogate pair is written as an escape. A message that still cannot be written is replaced: a response by
    an error, and any other message by itself without the params.
    """
    with suppress(Exception):  # the next attempt is more tolerant, for example of half a surrogate pair
        return to_json(fields, inf_nan_mode="null")
    try:
        return json.dumps(fields, allow_nan=False).encode("ascii")
    except Exception as error:
        logger.warning("a message cannot be written as JSON: %s: %s", type(error).__name__, str(error)[:200])
    return json.dumps(_in_place_of(fields)).encode("ascii")


def mended(data: bytes) -> bytes:
    """Repair a message for a parser that is stricter than `read_messages`; return the same object if it is fine.

    One with too many values to be parsed is replaced by a message without meaning.
    """
    if has_more_values(data):
        return _NOTHING
    # A large message that cannot be deep and has no surrogate escapes is base64 or text: do not parse it twice.
    if len(data) > _SMALL and not may_be_deep(data) and b"\\ud" not in data and b"\\uD" not in data:
        return data
    try:
        return data if may_be_delivered(from_json(data)) else _NOTHING
    except ValueError:
        pass
    try:
        value = read_leniently(data)
    except ValueError:  # not JSON: the reader reports that
        return data
    return to_json(value) if may_be_delivered(value) else _NOTHING


def failed_answer(request_id: str | int, failure: Exception) -> SessionMessage:
    """Make up a response in place of one that could not be read; `failure_in` returns its failure."""
    error = ErrorData(code=PARSE_ERROR, message=str(failure), data=failure)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def failure_in(error: ErrorData) -> Exception | None:
    """Return the failure of a `failed_answer`. Upstreams send JSON, so they cannot forge one."""
    return error.data if isinstance(error.data, Exception) else None


def answered_id(head: bytes, tail: bytes) -> int | None:
    """Find the id of the request that an overlong message answers in its first and last bytes; None if unknown."""
    found = _LEADING_ID.match(head) or _CLOSING_ID.search(tail)
    return int(found.group(1)) if found else None


def may_be_delivered(message: Any) -> bool:
    """Whether the SDK's dispatcher survives a message: it converts progress to float, whatever the number."""
    fields = as_object(message)
    if fields.get("method") != "notifications/progress":
        return True
    told = as_object(fields.get("params"))
    return is_finite(told.get("progress")) and (told.get("total") is None or is_finite(told["total"]))


def _json(data: bytes | str) -> Any:
    try:
        return from_json(data)
    except ValueError:
        # Lone surrogates, invalid UTF-8 and the like affect only the strings that contain them.
        return read_leniently(data)


def _without_tables(message: JSONRPCMessage) -> JSONRPCMessage:
    """Replace what has too many values in a notification, each step of which takes place on the event loop."""
    if not isinstance(message, JSONRPCNotification) or not message.params:
        return message
    if size_of(message.params, most_values=MANY_VALUES).is_whole:
        return message
    small = {key: _small(value) for key, value in list(message.params.items())[:MANY_VALUES]}
    return message.model_copy(update={"params": small})


def _small(value: Any) -> Any:
    return value if size_of(value, most_values=MANY_VALUES).is_whole else TOO_MANY_VALUES


def _in_place_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a replacement that can certainly be written for a message that cannot."""
    written: dict[str, Any] = {"jsonrpc": "2.0"}
    if "id" in fields:
        written["id"] = fields["id"] if isinstance(fields["id"], str | int) else None
    if "method" in fields:
        return {**written, "method": to_json_safe(str(fields["method"]))}
    message = "the answer cannot be written as JSON"
    error = as_object(fields.get("error"))
    if isinstance(error.get("code"), int) and isinstance(error.get("message"), str):
        return {**written, "error": {"code": error["code"], "message": to_json_safe(error["message"])}}
    return {**written, "error": {"code": INTERNAL_ERROR, "message": message}}


def _message(value: object) -> JSONRPCMessage | None:
    if not may_be_delivered(value):
        return None
    try:
        return _without_tables(jsonrpc_message_adapter.validate_python(value))
    except ValidationError:
        answer = value if is_dict(value) else {}
        request_id = answer.get("id")
        if "method" in answer or isinstance(request_id, bool) or not isinstance(request_id, int | str):
            return None
        return failed_answer(request_id, NotMcp("answered with something that is not a JSON-RPC response")).message

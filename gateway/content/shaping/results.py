"""Read a program's tool results into envelopes: an SDK's objects, JSON, a JSON-RPC response, content as bytes."""

from collections.abc import Mapping
from typing import Any, cast

import pybase64

from gateway.core.model.envelope import Envelope
from gateway.core.model.wire import text_result
from gateway.core.model_apis import openai_view as view
from gateway.core.results.lift_result import lift
from gateway.core.results.rescue import rescue
from gateway.errors import InvalidRequest

_DEEPEST = 32
"""How deep to look for bytes in a block; media is never deeper."""


def openai_view(result: Any) -> list[dict[str, Any]]:
    """Return a result as `{"type": "text", "text": ...}` and `{"type": "image_url", "image_url": {"url": ...}}`.

    `result` is an `Envelope`, or anything that `lower_turn` takes as a result. Images, including those in text or
    structured content, become data URIs; everything else that is not text becomes one line that names it. Structured
    content that no text repeats is added as JSON text, and the text of a failed call begins with `ERROR:`. Base64 never
    appears as text, and the list is never empty. Nothing is fitted to an API; use `lower_turn` for that.

    Raises:
        InvalidRequest: `result` is not the result of a tool call.
    """
    return view.write(rescue(as_envelope(result)))


def as_envelope(result: Any, where: str = "the result") -> Envelope:
    """Return the envelope of a CallToolResult's JSON, a JSON-RPC response with one, an SDK's object, or an envelope.

    A JSON-RPC error becomes a failed call with its message. Content may be a string, and media may be given as bytes.
    `where` names the result in error messages.

    Raises:
        InvalidRequest: `result` is none of these, or contains a value that JSON does not have.
    """
    if isinstance(result, Envelope):
        return result
    if isinstance(result, Mapping):
        return lift(_plain(_answered(cast("Mapping[str, Any]", result)), where))
    dump: Any = getattr(result, "model_dump", None)
    if dump is None:
        raise InvalidRequest(f"{where} has to be a CallToolResult, not {type(result).__name__}")
    return as_envelope(dump(mode="json", by_alias=True, exclude_none=True), where)


def _answered(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the result of a JSON-RPC response, or its error as a failed call; anything else is returned unchanged."""
    if "jsonrpc" not in result or "content" in result:
        return result
    inner, error = result.get("result"), result.get("error")
    if isinstance(inner, Mapping):
        return cast("Mapping[str, Any]", inner)
    message: Any = cast("Mapping[str, Any]", error).get("message") if isinstance(error, Mapping) else None
    if isinstance(message, str):
        return text_result(message, is_error=True)
    return result


def _plain(result: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the result with its content as JSON values, bytes as base64. The rest stays unchanged."""
    content = result.get("content")
    if not isinstance(content, list | tuple):
        return dict(result)
    blocks = cast("list[Any]", content)
    return {**result, "content": [_block(block, f"{where}.content[{at}]") for at, block in enumerate(blocks)]}


def _block(block: Any, where: str) -> Any:
    if hasattr(block, "model_dump"):
        return block.model_dump(mode="json", by_alias=True, exclude_none=True)
    return _encoded(block, where, 0)


def _encoded(value: Any, where: str, depth: int) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return pybase64.b64encode_as_string(bytes(cast("bytes", value)))
    if depth < _DEEPEST and isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {key: _encoded(member, f"{where}.{key}", depth + 1) for key, member in members.items()}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        return [_encoded(item, f"{where}[{at}]", depth + 1) for at, item in enumerate(items)]
    if value is not None and not isinstance(value, str | int | float | dict | list | tuple | Mapping):
        raise InvalidRequest(f"{where} is a {type(value).__name__}, which JSON does not have")
    return cast("Any", value)

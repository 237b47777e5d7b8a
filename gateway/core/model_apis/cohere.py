"""Cohere v2 chat: a message with calls has a plan, one without has content.

https://docs.cohere.com/reference/chat; cohere 7.3.1 (V2ChatResponse, AssistantChatMessageV2, ToolV2).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.model_apis.completions import (
    ToolCall,
    as_json,
    chunks_as_json,
    function_calls,
    gathered,
    gathered_calls,
    mapping,
    objects,
    without,
)
from gateway.core.model_apis.tool_schemas.input_schemas import functions
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("^[^A-Za-z_]|[^A-Za-z0-9_]"))
"""Tool.name: "only the characters a-z, A-Z, 0-9, _ and must not begin with a digit"."""


schemas = functions


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The calls of the message. Raises InvalidRequest: `completion` is not a response."""
    return function_calls(_message(completion).get("tool_calls"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """The assistant's message: calls with their plan, or content."""
    message = without(_message(completion))
    held = {key: objects(message.pop(key, None)) for key in ("tool_calls", "content", "citations")}
    return [{**message, "role": "assistant", **{key: items for key, items in held.items() if items}}]


def _message(completion: Any) -> Mapping[str, Any]:
    return mapping(as_json(completion).get("message"))


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The response that the events of a stream come to. Raises InvalidRequest: there are none.

    https://docs.cohere.com/v2/docs/streaming
    """
    message: dict[str, Any] = {}
    content: dict[Any, dict[str, Any]] = {}
    pieces: list[dict[str, Any]] = []
    for event in chunks_as_json(chunks):
        delta, index = without(mapping(mapping(event.get("delta")).get("message"))), event.get("index")
        kind = str(event.get("type"))
        if kind.startswith("content-"):
            gathered(content.setdefault(index, {}), without(mapping(delta.get("content"))), "type")
        elif kind.startswith("tool-call-"):
            pieces.append({**mapping(delta.get("tool_calls")), "index": index})
        elif kind in ("message-start", "tool-plan-delta"):
            gathered(message, {key: value for key, value in delta.items() if isinstance(value, str)}, "role")
    calls = [without(call, "index") for call in gathered_calls(pieces)]
    parts = [part for part in content.values() if part]
    return {"message": {**message, **({"tool_calls": calls} if calls else {}), **({"content": parts} if parts else {})}}

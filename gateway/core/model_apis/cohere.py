"""Cohere v2 chat: a message with calls has a plan, one without calls has content.

https://docs.cohere.com/reference/chat; cohere 7.3.1 (V2ChatResponse, AssistantChatMessageV2, ToolV2).

- Turns: tool messages hold text only; images follow in one user message (ToolMessageV2.content: text or documents;
  user content: text, image_url).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.turn import Part, Turn, Words
from gateway.core.model_apis.completions import (
    ToolCall,
    chunks_as_json,
    function_calls,
    gathered,
    gathered_calls,
    only_message,
)
from gateway.core.model_apis.sdk_json import objects_without_nulls, without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import functions
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("^[^A-Za-z_]|[^A-Za-z0-9_]"))
"""Tool.name: "only the characters a-z, A-Z, 0-9, _ and must not begin with a digit"."""


schemas = functions


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the calls of the message. Raises InvalidRequest: `completion` is not a response."""
    return function_calls(only_message(completion).get("tool_calls"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return the assistant's message: calls with their plan, or content."""
    message = without_nulls(only_message(completion))
    held = {key: objects_without_nulls(message.pop(key, None)) for key in ("tool_calls", "content", "citations")}
    return [{**message, "role": "assistant", **{key: items for key, items in held.items() if items}}]


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the events of a stream into a response. Raises InvalidRequest: there are no events.

    https://docs.cohere.com/v2/docs/streaming
    """
    message: dict[str, Any] = {}
    content: dict[Any, dict[str, Any]] = {}
    pieces: list[dict[str, Any]] = []
    for event in chunks_as_json(chunks):
        delta, index = without_nulls(as_object(as_object(event.get("delta")).get("message"))), event.get("index")
        kind = str(event.get("type"))
        if kind.startswith("content-"):
            gathered(content.setdefault(index, {}), without_nulls(as_object(delta.get("content"))), "type")
        elif kind.startswith("tool-call-"):
            pieces.append({**as_object(delta.get("tool_calls")), "index": index})
        elif kind in ("message-start", "tool-plan-delta"):
            gathered(message, {key: value for key, value in delta.items() if isinstance(value, str)}, "role")
    calls = [without_nulls(call, "index") for call in gathered_calls(pieces)]
    parts = [part for part in content.values() if part]
    return {"message": {**message, **({"tool_calls": calls} if calls else {}), **({"content": parts} if parts else {})}}


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the messages after the assistant's: one tool message for each call, then at most one user message."""
    messages: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": answer.call.id, "content": answer.text if answer.raw is None else answer.raw}
        for answer in turn.answers
    ]
    if turn.follow_ups:
        messages.append(user_message(turn.follow_up_parts))
    return messages


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user message with these parts."""
    return {"role": "user", "content": [write_part(part) for part in parts]}


def write_part(part: Part) -> dict[str, Any]:
    """Write one content part of a user message: `text` or `image_url`."""
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": part.url}}

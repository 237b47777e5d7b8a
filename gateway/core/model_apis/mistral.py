"""Mistral chat: OpenAI's form, with content in chunks and ids of nine letters and digits.

https://docs.mistral.ai/api; mistralai 3.7.0 (ChatCompletionResponse, AssistantMessage, Tool).

- Completions: reasoning is part of the content, as chunks of type `thinking`, and is returned there.
- Turns: tool messages hold text or a list of chunks (ToolMessage.content: text, image_url, document_url, input_audio,
  the last of them a plain string).
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.turn import Answer, Part, Turn, Words
from gateway.core.model_apis.completions import (
    ToolCall,
    assistant_message,
    chunks_as_json,
    first_message,
    function_calls,
    joined_choice,
)
from gateway.core.model_apis.tool_schemas.input_schemas import functions
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""As in OpenAI's form."""


schemas = functions


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the calls of the first choice. Raises InvalidRequest: `completion` is not a response."""
    return function_calls(first_message(completion).get("tool_calls"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return the one assistant message, its chunks unchanged."""
    return [assistant_message(first_message(completion))]


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the chunks of a stream, or the SDK's events around them, into a response: its first choice.

    Raises:
        InvalidRequest: there are no chunks.
    """
    # Each call comes as a whole, and the SDK gives every one the index 0.
    events = chunks_as_json(chunks)
    return joined_choice((as_object(event.get("data")) or event for event in events), whole_calls=True)


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the messages after the assistant's: one tool message for each call, then at most one user message."""
    messages = [_tool_message(answer) for answer in turn.answers]
    if turn.follow_ups:
        messages.append(user_message(turn.follow_up_parts))
    return messages


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user message with these parts as chunks."""
    return {"role": "user", "content": [write_part(part) for part in parts]}


def _tool_message(answer: Answer) -> dict[str, Any]:
    content = answer.content(write_part)
    return {"role": "tool", "tool_call_id": answer.call.id, "name": answer.call.name, "content": content}


def write_part(part: Part) -> dict[str, Any]:
    """Write one chunk: `text`, `image_url`, `input_audio`, `document_url`, or `file` for a file that Mistral keeps."""
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    if part.file_id:
        return {"type": "file", "file_id": part.file_id}
    match part.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": part.url}}
        case "audio":
            return {"type": "input_audio", "input_audio": part.data}
        case _:
            name = {"document_name": part.title} if part.title else {}
            return {"type": "document_url", "document_url": part.url, **name}

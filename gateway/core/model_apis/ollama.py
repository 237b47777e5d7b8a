"""Ollama's /api/chat: the message goes back as it is. Calls have no id: results belong to them by their order.

https://docs.ollama.com/api/chat; ollama 0.6.3 (ChatResponse, Message, Tool).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.model_apis.completions import (
    ToolCall,
    as_json,
    assistant_message,
    chunks_as_json,
    function_calls,
    gathered,
    mapping,
    without,
)
from gateway.core.model_apis.tool_schemas.input_schemas import functions
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""What the models' templates are made for; the server itself checks nothing."""


schemas = functions


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The calls of the message, in order, without ids. Raises InvalidRequest: `completion` is not a response."""
    return function_calls(_message(completion).get("tool_calls"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """The one assistant's message, its thinking kept."""
    return [assistant_message(_message(completion))]


def _message(completion: Any) -> Mapping[str, Any]:
    return mapping(as_json(completion).get("message"))


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The response that the lines of a stream come to. Raises InvalidRequest: there are none."""
    message: dict[str, Any] = {}
    for chunk in chunks_as_json(chunks):
        gathered(message, without(_message(chunk)), "role")
    return {"message": message}

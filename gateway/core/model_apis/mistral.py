"""Mistral chat: OpenAI's form, with content in chunks and ids of nine letters and digits.

https://docs.mistral.ai/api; mistralai 3.7.0 (ChatCompletionResponse, AssistantMessage, Tool). Reasoning stands in the
content, as chunks of type `thinking`, and goes back there.
"""

import re
from collections.abc import Iterable
from typing import Any

from gateway.core.model_apis.completions import (
    ToolCall,
    assistant_message,
    chunks_as_json,
    first_message,
    function_calls,
    joined_choice,
    mapping,
)
from gateway.core.model_apis.tool_schemas.input_schemas import functions
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""As in OpenAI's form."""


schemas = functions


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The calls of the first choice. Raises InvalidRequest: `completion` is not a response."""
    return function_calls(first_message(completion).get("tool_calls"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """The one assistant's message, its chunks kept."""
    return [assistant_message(first_message(completion))]


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The response that the chunks of a stream come to, or the SDK's events around them; its first choice.

    Raises:
        InvalidRequest: there are none.
    """
    # Each call comes as a whole, and the SDK says of every one that its index is 0.
    events = chunks_as_json(chunks)
    return joined_choice((mapping(event.get("data")) or event for event in events), whole_calls=True)

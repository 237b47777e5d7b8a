"""Anthropic Messages, as JSON and as the SDK's objects: calls out, history in."""

from typing import Any

import pytest
from anthropic.types import Message, MessageParam
from pydantic import TypeAdapter

from gateway.core.model_apis import anthropic_messages
from gateway.core.model_apis.completions import ToolCall

ARGUMENTS = {"path": "a.png", "nothing": None, "deep": [{"x": None}]}

CALLS = (ToolCall("one", "read", ARGUMENTS), ToolCall("two", "list", {}))

MESSAGE: dict[str, Any] = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "signed"},
        {"type": "redacted_thinking", "data": "hidden"},
        {"type": "text", "text": "", "citations": None},
        {"type": "text", "text": "Let me look.", "citations": None},
        {"type": "tool_use", "id": "one", "name": "read", "input": ARGUMENTS},
        {"type": "tool_use", "id": "two", "name": "list", "input": {}},
    ],
}


def both(sdk: Any, completion: dict[str, Any]) -> list[Any]:
    return [completion, sdk.model_validate(completion)]


@pytest.mark.parametrize("completion", both(Message, MESSAGE), ids=["json", "sdk"])
def test_anthropic_thinking_goes_back_whole_and_empty_text_does_not(completion: Any) -> None:
    assert anthropic_messages.tool_calls(completion) == CALLS
    messages = anthropic_messages.assistant_messages(completion)
    TypeAdapter(list[MessageParam]).validate_python(messages)
    thinking, hidden, _, text, *uses = MESSAGE["content"]
    said = {"type": "text", "text": text["text"]}
    assert messages == [{"role": "assistant", "content": [thinking, hidden, said, *uses]}]


def test_broken_input_goes_back_as_an_object_where_the_api_takes_nothing_else() -> None:
    start = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    pieces = [
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": '}},
    ]
    joined = anthropic_messages.joined(pieces)
    assert anthropic_messages.tool_calls(joined)[0].malformed == '{"a": '
    assert anthropic_messages.assistant_messages(joined)[0]["content"] == [start]

"""OpenAI Responses, as JSON and as the SDK's objects: calls out, history in."""

import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseInputItemParam
from pydantic import TypeAdapter

from gateway.core.model_apis import openai_responses
from gateway.core.model_apis.completions import ToolCall

ARGUMENTS = {"path": "a.png", "nothing": None, "deep": [{"x": None}]}

CALLS = (ToolCall("one", "read", ARGUMENTS), ToolCall("two", "list", {}))

RESPONSE: dict[str, Any] = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed", "status": None},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "one",
            "name": "read",
            "arguments": json.dumps(ARGUMENTS),
            "status": "completed",
        },
        {"type": "function_call", "id": "fc_2", "call_id": "two", "name": "list", "arguments": "{}"},
    ],
}


def both(sdk: Any, completion: dict[str, Any]) -> list[Any]:
    return [completion, sdk.model_validate(completion)]


@pytest.mark.parametrize("completion", both(Response, RESPONSE), ids=["json", "sdk"])
def test_the_items_of_a_response_go_back_with_the_encrypted_reasoning(completion: Any) -> None:
    assert openai_responses.tool_calls(completion) == CALLS
    items = openai_responses.assistant_messages(completion)
    TypeAdapter(list[ResponseInputItemParam]).validate_python(items)
    expected = [{key: value for key, value in item.items() if value is not None} for item in RESPONSE["output"]]
    assert items == expected

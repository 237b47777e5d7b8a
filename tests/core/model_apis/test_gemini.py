"""Gemini generateContent, as JSON and as the SDK's objects: calls out, history in."""

import json
from typing import Any

import pytest
from google.genai import types as google

from gateway.core.model_apis import gemini
from gateway.core.model_apis.completions import ToolCall

ARGUMENTS = {"path": "a.png", "nothing": None, "deep": [{"x": None}]}

CALLS = (ToolCall("one", "read", ARGUMENTS), ToolCall("two", "list", {}))

CONTENT: dict[str, Any] = {
    "candidates": [
        {
            "index": 0,
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Hm.", "thought": True},
                    {
                        "functionCall": {"id": "one", "name": "read", "args": ARGUMENTS},
                        "thoughtSignature": "c2lnbmVk",
                    },
                    {"functionCall": {"id": "two", "name": "list"}},
                ],
            },
        }
    ]
}


def both(sdk: Any, completion: dict[str, Any]) -> list[Any]:
    return [completion, sdk.model_validate(completion)]


@pytest.mark.parametrize("completion", both(google.GenerateContentResponse, CONTENT), ids=["json", "sdk"])
def test_gemini_parts_go_back_with_their_thought_signatures(completion: Any) -> None:
    assert gemini.tool_calls(completion) == CALLS
    messages = gemini.assistant_messages(completion)
    content = google.Content.model_validate(messages[0])
    assert content.parts is not None
    assert content.parts[1].thought_signature == b"signed"
    assert messages == [CONTENT["candidates"][0]["content"]]
    json.dumps(messages)


def test_gemini_in_snake_case_and_without_ids_is_read_too() -> None:
    part = {"function_call": {"name": "read", "args": {"a": 1}}, "thought_signature": "c2ln"}
    completion = {"candidates": [{"content": {"role": "model", "parts": [part]}}]}
    assert gemini.tool_calls(completion) == (ToolCall("", "read", {"a": 1}),)
    assert gemini.assistant_messages(completion) == [{"role": "model", "parts": [part]}]


def test_gemini_s_signatures_stay_in_their_own_parts() -> None:
    def chunk(*parts: dict[str, Any]) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}

    signed = {"text": "b", "thoughtSignature": "c2ln"}
    joined = gemini.joined([chunk({"text": "a"}), chunk({"text": "a"}), chunk(signed), chunk({"text": "c"})])
    assert joined["candidates"][0]["content"]["parts"] == [{"text": "aa"}, signed, {"text": "c"}]

"""Chat Completions, as JSON and as the SDK's objects: calls out, history in."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam
from openai.types.chat.parsed_chat_completion import ParsedChatCompletion, ParsedChatCompletionMessage, ParsedChoice
from openai.types.chat.parsed_function_tool_call import ParsedFunction, ParsedFunctionToolCall
from pydantic import TypeAdapter

from gateway.core.model_apis import openai_chat
from gateway.core.model_apis.completions import ToolCall

ARGUMENTS = {"path": "a.png", "nothing": None, "deep": [{"x": None}]}

CALLS = (ToolCall("one", "read", ARGUMENTS), ToolCall("two", "list", {}))

CHAT: dict[str, Any] = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "function_call": None,
                "reasoning_content": "I should look.",
                "reasoning_details": [{"type": "reasoning.encrypted", "data": "xyz"}],
                "tool_calls": [
                    {"id": "one", "type": "function", "function": {"name": "read", "arguments": json.dumps(ARGUMENTS)}},
                    {"id": "two", "type": "function", "function": {"name": "list", "arguments": ""}},
                ],
            },
        }
    ],
}


def both(sdk: Any, completion: dict[str, Any]) -> list[Any]:
    return [completion, sdk.model_validate(completion)]


@pytest.mark.parametrize("completion", both(ChatCompletion, CHAT), ids=["json", "sdk"])
def test_a_chat_message_goes_back_with_its_reasoning_and_its_calls(completion: Any) -> None:
    assert openai_chat.tool_calls(completion) == CALLS
    (message,) = messages = openai_chat.assistant_messages(completion)
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(messages)
    answered = CHAT["choices"][0]["message"]
    kept = ("role", "content", "reasoning_content", "reasoning_details", "tool_calls")
    assert message == {key: answered[key] for key in kept}


def test_a_custom_tool_call_is_answered_like_any_other() -> None:
    called = {"id": "x", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
    completion = {"choices": [{"message": {"role": "assistant", "tool_calls": [called]}}]}
    assert openai_chat.tool_calls(completion) == (ToolCall("x", "shell", malformed="ls -l"),)


def test_chat_calls_without_an_id_get_the_same_one_in_the_history() -> None:
    call = {"index": 0, "id": None, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    completion = {"choices": [{"message": {"role": "assistant", "tool_calls": [call, {**call, "id": ""}]}}]}
    assert [one.id for one in openai_chat.tool_calls(completion)] == ["call_0", "call_1"]
    (message,) = openai_chat.assistant_messages(completion)
    assert [one["id"] for one in message["tool_calls"]] == ["call_0", "call_1"]
    assert "index" not in message["tool_calls"][0]


def test_what_the_sdk_parsed_itself_does_not_go_back() -> None:
    function = ParsedFunction(name="read", arguments="{}", parsed_arguments={"a": 1})
    call = ParsedFunctionToolCall(id="one", type="function", function=function)
    message = ParsedChatCompletionMessage(role="assistant", tool_calls=[call], parsed={"a": 1})
    choice = ParsedChoice(index=0, finish_reason="tool_calls", message=message)
    completion = ParsedChatCompletion(
        id="c", object="chat.completion", created=1, model="m", choices=[choice], service_tier=None
    )
    (said,) = openai_chat.assistant_messages(completion)
    written = {"id": "one", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    assert said == {"role": "assistant", "content": None, "tool_calls": [written]}


def test_spoken_answers_and_refusals_go_back_as_a_request_takes_them() -> None:
    spoken = {"role": "assistant", "content": None, "audio": {"id": "a1", "data": "UklGRg==", "transcript": "Hi"}}
    (message,) = openai_chat.assistant_messages({"choices": [{"message": spoken}]})
    assert message == {"role": "assistant", "content": None, "audio": {"id": "a1"}}
    (message,) = openai_chat.assistant_messages({"choices": [{"message": {"refusal": "No."}}]})
    assert message == {"role": "assistant", "content": None, "refusal": "No."}


class Dumped:
    """An object of an SDK that has `to_dict` and nothing else."""

    def to_dict(self) -> dict[str, Any]:
        return CHAT


def test_an_object_that_only_becomes_a_dict_is_read_too() -> None:
    assert openai_chat.tool_calls(Dumped()) == CALLS


def test_broken_arguments_are_malformed_and_cost_only_their_call() -> None:
    pieces = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"a": '}}, {"index": 1, "id": "b"}]
    chunks = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    first, second = openai_chat.tool_calls(openai_chat.joined(chunks))
    assert (first.malformed, second.malformed) == ('{"a": ', None)

"""Completions of the four API dialects, as the official SDKs' objects and as JSON: calls out, history in, schemas."""

import json
from typing import Any

import pytest
from anthropic.types import Message, MessageParam
from anthropic.types import ToolParam as AnthropicTool
from google.genai import types as google
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from openai.types.chat.parsed_chat_completion import ParsedChatCompletion, ParsedChatCompletionMessage, ParsedChoice
from openai.types.chat.parsed_function_tool_call import ParsedFunction, ParsedFunctionToolCall
from openai.types.responses import FunctionToolParam, Response, ResponseInputItemParam
from pydantic import TypeAdapter

from gateway.core.model_apis import anthropic_messages, gemini, openai_chat, openai_responses
from gateway.core.model_apis.completions import ToolCall
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.errors import InvalidRequest

DIALECTS = [anthropic_messages, gemini, openai_chat, openai_responses]
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


@pytest.mark.parametrize("completion", both(ChatCompletion, CHAT), ids=["json", "sdk"])
def test_a_chat_message_goes_back_with_its_reasoning_and_its_calls(completion: Any) -> None:
    assert openai_chat.tool_calls(completion) == CALLS
    (message,) = messages = openai_chat.assistant_messages(completion)
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(messages)
    answered = CHAT["choices"][0]["message"]
    kept = ("role", "content", "reasoning_content", "reasoning_details", "tool_calls")
    assert message == {key: answered[key] for key in kept}


@pytest.mark.parametrize("completion", both(Response, RESPONSE), ids=["json", "sdk"])
def test_the_items_of_a_response_go_back_with_the_encrypted_reasoning(completion: Any) -> None:
    assert openai_responses.tool_calls(completion) == CALLS
    items = openai_responses.assistant_messages(completion)
    TypeAdapter(list[ResponseInputItemParam]).validate_python(items)
    expected = [{key: value for key, value in item.items() if value is not None} for item in RESPONSE["output"]]
    assert items == expected


@pytest.mark.parametrize("completion", both(Message, MESSAGE), ids=["json", "sdk"])
def test_anthropic_thinking_goes_back_whole_and_empty_text_does_not(completion: Any) -> None:
    assert anthropic_messages.tool_calls(completion) == CALLS
    messages = anthropic_messages.assistant_messages(completion)
    TypeAdapter(list[MessageParam]).validate_python(messages)
    thinking, hidden, _, text, *uses = MESSAGE["content"]
    said = {"type": "text", "text": text["text"]}
    assert messages == [{"role": "assistant", "content": [thinking, hidden, said, *uses]}]


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


@pytest.mark.parametrize("written", ["{", "[1]", '"text"', "5", "{'a': 1}", "[" * 100_000])
def test_arguments_that_are_no_object_are_kept_as_they_were_written(written: str) -> None:
    called = {"id": "x", "type": "function", "function": {"name": "read", "arguments": written}}
    completion = {"choices": [{"message": {"role": "assistant", "tool_calls": [called]}}]}
    assert openai_chat.tool_calls(completion) == (ToolCall("x", "read", malformed=written),)
    item = {"type": "function_call", "call_id": "x", "name": "read", "arguments": written}
    assert openai_responses.tool_calls({"output": [item]}) == (ToolCall("x", "read", malformed=written),)


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


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("nonsense", [{}, {"choices": 5, "output": None, "content": "x", "candidates": [None]}])
def test_an_answer_that_says_nothing_has_no_calls(dialect: Any, nonsense: dict[str, Any]) -> None:
    assert dialect.tool_calls(nonsense) == ()
    expected = [{"role": "assistant", "content": ""}] if dialect is openai_chat else []
    assert dialect.assistant_messages(nonsense) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("what", ["text", None, 5, [CHAT]])
def test_something_that_is_no_completion_is_refused(dialect: Any, what: Any) -> None:
    with pytest.raises(InvalidRequest, match="a completion has to be"):
        dialect.tool_calls(what)


class Dumped:
    """An object of an SDK that has `to_dict` and nothing else."""

    def to_dict(self) -> dict[str, Any]:
        return CHAT


def test_an_object_that_only_becomes_a_dict_is_read_too() -> None:
    assert openai_chat.tool_calls(Dumped()) == CALLS


MEMBERS = [
    *("choices", "message", "tool_calls", "function", "name", "id", "arguments", "output", "type", "content"),
    *("candidates", "parts", "functionCall"),
]
NAMES = st.sampled_from(MEMBERS)
JSON = st.recursive(
    st.none() | st.integers() | st.sampled_from(["", "{", "{}", "function_call", "tool_use", "text"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=20,
)


@given(st.dictionaries(NAMES, JSON), st.sampled_from(DIALECTS))
def test_whatever_a_server_answers_is_read_without_a_crash(completion: dict[str, Any], dialect: Any) -> None:
    before = json.dumps(completion)
    calls = dialect.tool_calls(completion)
    messages = dialect.assistant_messages(completion)
    assert all(isinstance(call.id, str) and isinstance(call.name, str) for call in calls)
    assert json.dumps(completion) == before
    json.dumps(messages)


# -- schemas -----------------------------------------------------------------------------------------------------------

TOOL = {
    "name": "read",
    "title": "Read",
    "description": "Reads a file.",
    "inputSchema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"path": {"type": "string", "enum": ["a", "b"]}},
        "required": ["path"],
        "additionalProperties": False,
    },
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}
KEPT = {
    "type": "object",
    "properties": {"path": {"type": "string", "enum": ["a", "b"]}},
    "required": ["path"],
    "additionalProperties": False,
}


def test_tools_are_described_as_each_api_takes_them() -> None:
    (tool,) = openai_chat.schemas([TOOL])
    assert tool == {
        "type": "function",
        "function": {"name": "read", "description": "Reads a file.", "parameters": KEPT},
    }
    TypeAdapter(ChatCompletionFunctionToolParam).validate_python(tool)
    (tool,) = openai_responses.schemas([TOOL])
    assert tool == {
        "type": "function",
        "name": "read",
        "description": "Reads a file.",
        "parameters": KEPT,
        "strict": False,
    }
    TypeAdapter(FunctionToolParam).validate_python(tool | {"async": False})
    (tool,) = anthropic_messages.schemas([TOOL])
    assert tool == {"name": "read", "description": "Reads a file.", "input_schema": KEPT}
    TypeAdapter(AnthropicTool).validate_python(tool)
    (tool,) = gemini.schemas([TOOL])
    declared = {"name": "read", "description": "Reads a file.", "parametersJsonSchema": KEPT}
    assert tool == {"functionDeclarations": [declared]}
    google.Tool.model_validate(tool)
    assert gemini.schemas([]) == []


def test_a_description_is_cut_where_the_api_has_a_limit() -> None:
    long = {**TOOL, "description": "A sentence. " * 200}
    described = openai_chat.schemas([long])[0]["function"]["description"]
    assert 900 < len(described) <= 1024
    assert anthropic_messages.schemas([long])[0]["description"] == long["description"]
    assert "description" not in openai_chat.schemas([{"name": "x"}])[0]["function"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "required": ["a"],
                "anyOf": [{"required": ["b"]}, {"properties": {"b": {}, "a": {"type": "integer"}}}],
            },
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
        ),
        (
            {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"required": ["b", "a"]}], "not": {}, "enum": []},
            {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]},
        ),
        (
            {"type": "object", "oneOf": "nonsense", "properties": None, "$defs": {"x": {}}},
            {"type": "object", "properties": {}, "$defs": {"x": {}}},
        ),
    ],
)
def test_a_schema_is_an_object_without_combinators_at_its_top(schema: Any, expected: dict[str, Any]) -> None:
    assert parameters({"inputSchema": schema} if schema is not None else {}) == expected


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["9lives", "a.b", "x" * 200, "ünïcode", "ok_name-1"])
def test_names_are_made_legal_for_the_api(dialect: Any, name: str) -> None:
    fitted = dialect.NAMES.fitted(name, "one__" + name)
    assert len(fitted) <= 64
    assert fitted.replace("_", "").replace("-", "").isalnum()
    assert fitted.isascii()
    assert dialect is not gemini or fitted[0].isalpha() or fitted[0] == "_"
    assert dialect.NAMES.fitted("ok_name-1", "x") == "ok_name-1"

"""Completions of the APIs that most programs speak, whatever stands in them: calls out, history in."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.model_apis import anthropic_messages, gemini, openai_chat, openai_responses
from gateway.core.model_apis.completions import ToolCall
from gateway.core.model_apis.registry import APIS, Writing
from gateway.errors import InvalidRequest

DIALECTS = [anthropic_messages, gemini, openai_chat, openai_responses]


@pytest.mark.parametrize("written", ["{", "[1]", '"text"', "5", "{'a': 1}", "[" * 100_000])
def test_arguments_that_are_no_object_are_kept_as_they_were_written(written: str) -> None:
    called = {"id": "x", "type": "function", "function": {"name": "read", "arguments": written}}
    completion = {"choices": [{"message": {"role": "assistant", "tool_calls": [called]}}]}
    assert openai_chat.tool_calls(completion) == (ToolCall("x", "read", malformed=written),)
    item = {"type": "function_call", "call_id": "x", "name": "read", "arguments": written}
    assert openai_responses.tool_calls({"output": [item]}) == (ToolCall("x", "read", malformed=written),)


SILENT: dict[Writing, list[dict[str, Any]]] = {
    "openai_chat": [{"choices": [{"message": {}}]}, {"choices": [{"finish_reason": "stop"}]}],
    "openai_responses": [{"output": []}, {"output": 5}],
    "anthropic_messages": [{"content": []}, {"content": "x"}],
    "gemini": [{"candidates": [None]}, {"promptFeedback": {"blockReason": "SAFETY"}}, {"usageMetadata": {}}],
    "gemini_interactions": [{"status": "completed"}, {"steps": []}, {"outputs": [5]}],
    "bedrock_converse": [{"output": {}}, {"output": {"message": {"content": None}}}],
    "mistral": [{"choices": [{"message": {"content": ""}}]}],
    "cohere": [{"message": {}}],
    "ollama": [{"message": {"role": "assistant"}}],
}
"""Completions in which the model says nothing."""


@pytest.mark.parametrize(("api", "completion"), [(api, one) for api, several in SILENT.items() for one in several])
def test_an_answer_that_says_nothing_has_no_calls(api: Writing, completion: dict[str, Any]) -> None:
    assert APIS[api].tool_calls(completion) == ()
    said = APIS[api].assistant_messages(completion)
    assert all(message["role"] == "assistant" and not message.get("content") for message in said)
    assert len(said) <= 1


@pytest.mark.parametrize("api", APIS)
def test_an_error_and_what_another_api_answers_are_no_completions(api: Writing) -> None:
    ours = set().union(*SILENT[api])
    foreign = [one for several in SILENT.values() for one in several if not ours & set(one)]
    for what in [{}, {"foo": 1}, {"choices": []}, *foreign]:
        for read in (APIS[api].tool_calls, APIS[api].assistant_messages):
            with pytest.raises(InvalidRequest, match="not a completion of the chosen API: it needs '"):
                read(what)
    for error in ({"message": "rate limited", "type": "x"}, "rate limited"):
        with pytest.raises(InvalidRequest, match="an error of the model API, not a completion: rate limited"):
            APIS[api].tool_calls({"type": "error", "error": error})


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("what", ["text", None, 5, [{"choices": []}]])
def test_something_that_is_no_completion_is_refused(dialect: Any, what: Any) -> None:
    with pytest.raises(InvalidRequest, match="a completion must be"):
        dialect.tool_calls(what)


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
    try:
        calls = dialect.tool_calls(completion)
    except InvalidRequest:
        with pytest.raises(InvalidRequest):
            dialect.assistant_messages(completion)
        return
    messages = dialect.assistant_messages(completion)
    assert all(isinstance(call.id, str) and isinstance(call.name, str) for call in calls)
    assert json.dumps(completion) == before
    json.dumps(messages)

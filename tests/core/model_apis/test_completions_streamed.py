"""A streamed answer comes to the same as a whole one, on every API, as JSON and as the official SDKs' chunks."""

import json
from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from google.genai import types as google
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.core.model_apis import anthropic_messages, bedrock_converse, gemini, openai_chat
from gateway.core.model_apis.registry import APIS
from gateway.errors import InvalidRequest
from gateway.testing.model_apis.replies.writing import Asked
from gateway.testing.model_apis.scripts import Reply, ToolCall
from gateway.testing.model_apis.server import OPENAI_CHAT, WRITERS

REPLIES = {
    "text": Reply("A chart of twelve months, with a summer that stands out."),
    "calls": Reply("", "", (ToolCall("read", {"path": "a picture.png"}, "c1"), ToolCall("list", {}, "c2"))),
    "all": Reply("Let me look at it.", "I should look first.", (ToolCall("read", {"n": [1, {"a": "ü"}]}, "c1"),)),
}
SDKS: dict[str, Any] = {
    "openai_chat": ChatCompletionChunk,
    "openai_responses": ResponseStreamEvent,
    "anthropic_messages": RawMessageStreamEvent,
    "gemini": google.GenerateContentResponse,
}
STREAMED = sorted(name for name in APIS if name != "bedrock_converse")


def events(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith(("data: ", "{"))]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def streamed(api: str, reply: Reply) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    writer, asked = WRITERS.get(api, OPENAI_CHAT), Asked(1, "m", {})
    assert writer.events is not None
    return events("".join(writer.events(reply, asked))), writer.whole(reply, asked)


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("api", STREAMED)
def test_the_chunks_come_to_the_whole_answer(api: str, reply: Reply) -> None:
    chunks, whole = streamed(api, reply)
    dialect = APIS[api]  # pyright: ignore[reportArgumentType]
    joined = dialect.joined(iter(chunks))
    assert dialect.tool_calls(joined) == dialect.tool_calls(whole)
    (*_, said), (*_, expected) = dialect.assistant_messages(joined), dialect.assistant_messages(whole)
    assert flat(said, api in TEXT) == flat(expected, api in TEXT)
    if api in SDKS:
        # The SDK swallows pings.
        objects = [TypeAdapter(SDKS[api]).validate_python(chunk) for chunk in chunks if chunk != {"type": "ping"}]
        assert dialect.tool_calls(dialect.joined(objects)) == dialect.tool_calls(whole)


TEXT = ("openai_chat", "openai_responses", "mistral", "cohere")
"""APIs whose arguments are JSON text, which stands for the same however it is spaced."""


def flat(value: Any, is_text: bool) -> Any:
    """A message for comparison: empty content is none."""
    if isinstance(value, dict):
        kept = {key: flat(one, is_text) for key, one in value.items() if key != "index"}
        return {key: one for key, one in kept.items() if one not in ("", None, []) or key == "arguments"}
    if isinstance(value, list):
        return [flat(one, is_text) for one in value]
    return json.loads(value) if is_text and isinstance(value, str) and value.startswith("{") else value


def test_bedrock_s_stream_comes_to_its_answer() -> None:
    chunks = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "I sh"}}, "contentBlockIndex": 0}},
        {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "ould"}}, "contentBlockIndex": 0}},
        {"contentBlockDelta": {"delta": {"reasoningContent": {"signature": "s"}}, "contentBlockIndex": 0}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"contentBlockDelta": {"delta": {"text": "Let me "}, "contentBlockIndex": 1}},
        {"contentBlockDelta": {"delta": {"text": "look."}, "contentBlockIndex": 1}},
        {"contentBlockStart": {"start": {"toolUse": {"toolUseId": "t1", "name": "read"}}, "contentBlockIndex": 2}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"path": '}}, "contentBlockIndex": 2}},
        {"contentBlockDelta": {"delta": {"toolUse": {"input": '"a.png"}'}}, "contentBlockIndex": 2}},
        {"messageStop": {"stopReason": "tool_use"}},
        {"metadata": {"usage": {}}},
    ]
    joined = bedrock_converse.joined(chunks)
    (message,) = bedrock_converse.assistant_messages(joined)
    assert message["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "I should", "signature": "s"}}},
        {"text": "Let me look."},
        {"toolUse": {"toolUseId": "t1", "name": "read", "input": {"path": "a.png"}}},
    ]
    assert [(call.id, call.name, call.arguments) for call in bedrock_converse.tool_calls(joined)] == [
        ("t1", "read", {"path": "a.png"})
    ]


def test_gemini_s_signatures_stay_in_their_own_parts() -> None:
    def chunk(*parts: dict[str, Any]) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}

    signed = {"text": "b", "thoughtSignature": "c2ln"}
    joined = gemini.joined([chunk({"text": "a"}), chunk({"text": "a"}), chunk(signed), chunk({"text": "c"})])
    assert joined["candidates"][0]["content"]["parts"] == [{"text": "aa"}, signed, {"text": "c"}]


@pytest.mark.parametrize("api", sorted(APIS))
def test_no_stream_at_all_is_refused(api: str) -> None:
    joined = APIS[api].joined  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidRequest, match="no chunks"):
        joined([])
    with pytest.raises(InvalidRequest, match="not str"):
        joined(["data: {}"])


def test_broken_arguments_are_malformed_and_cost_only_their_call() -> None:
    pieces = [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"a": '}}, {"index": 1, "id": "b"}]
    chunks = [{"choices": [{"delta": {"tool_calls": [piece]}}]} for piece in pieces]
    first, second = openai_chat.tool_calls(openai_chat.joined(chunks))
    assert (first.malformed, second.malformed) == ('{"a": ', None)


def test_broken_input_goes_back_as_an_object_where_the_api_takes_nothing_else() -> None:
    start = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    pieces = [
        {"type": "content_block_start", "index": 0, "content_block": start},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": '}},
    ]
    joined = anthropic_messages.joined(pieces)
    assert anthropic_messages.tool_calls(joined)[0].malformed == '{"a": '
    assert anthropic_messages.assistant_messages(joined)[0]["content"] == [start]

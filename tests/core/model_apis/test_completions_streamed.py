"""A streamed answer comes to the same as a whole one, on every API, as JSON and as the official SDKs' chunks."""

import json
from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from google.genai import types as google
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from gateway.core.model_apis.registry import APIS
from gateway.errors import InvalidRequest
from gateway.testing.model_apis.replies.write_reply import Asked
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


@pytest.mark.parametrize("api", sorted(APIS))
def test_no_stream_at_all_is_refused(api: str) -> None:
    joined = APIS[api].joined  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidRequest, match="no chunks"):
        joined([])
    with pytest.raises(InvalidRequest, match="not str"):
        joined(["data: {}"])

"""Completions of Bedrock, Mistral, Cohere, Ollama and Gemini Interactions, as JSON and as the SDKs' own objects."""

from typing import Any

import pytest
from cohere.types import AssistantChatMessageV2, ToolV2
from cohere.v2.types import V2ChatResponse
from mistralai.client import models as mistral_models
from ollama import ChatResponse, Message, Tool
from pydantic import TypeAdapter

from gateway.core.model_apis import bedrock_converse, cohere, gemini_interactions, mistral, ollama
from gateway.core.model_apis.completions import ToolCall
from gateway.errors import InvalidRequest
from gateway.testing.model_apis.replies.write_reply import Asked
from gateway.testing.model_apis.scripts import Reply
from gateway.testing.model_apis.scripts import ToolCall as Called
from gateway.testing.model_apis.server import WRITERS

DIALECTS = {
    "bedrock_converse": bedrock_converse,
    "cohere": cohere,
    "gemini_interactions": gemini_interactions,
    "mistral": mistral,
    "ollama": ollama,
}
ARGUMENTS = {"path": "a.png", "deep": [{"x": None}]}
REPLY = Reply("Let me look.", "Hm.", (Called("read", ARGUMENTS, "c00000001"), Called("list", {}, "c00000002")))
SDKS: dict[str, Any] = {
    "cohere": V2ChatResponse,
    "mistral": mistral_models.ChatCompletionResponse,
    "ollama": ChatResponse,
}
TOOL = {"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}


def completions() -> list[Any]:
    answers = [(name, WRITERS[name].whole(REPLY, Asked(1, "m", {}))) for name in DIALECTS]
    objects = [(name, SDKS[name].model_validate(answer)) for name, answer in answers if name in SDKS]
    return [*answers, *objects]


@pytest.mark.parametrize(
    ("name", "completion"),
    completions(),
    ids=lambda value: value if isinstance(value, str) else "json" if isinstance(value, dict) else "sdk",
)
def test_calls_come_out_in_order(name: str, completion: Any) -> None:
    first, second = ("", "") if name == "ollama" else ("c00000001", "c00000002")
    calls = (ToolCall(first, "read", ARGUMENTS), ToolCall(second, "list", {}))
    assert DIALECTS[name].tool_calls(completion) == calls
    said = str(DIALECTS[name].assistant_messages(completion))
    assert "Let me look." in said or name == "cohere"
    assert "a.png" in said


def test_reasoning_goes_back_where_each_api_has_it() -> None:
    for name in ("bedrock_converse", "cohere", "gemini_interactions", "ollama"):
        completion = WRITERS[name].whole(REPLY, Asked(1, "m", {}))
        assert "Hm." in str(DIALECTS[name].assistant_messages(completion)), name
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    content = [thinking, {"type": "text", "text": "Let me look."}]
    assert mistral.assistant_messages({"choices": [{"message": {"content": content}}]})[0]["content"] == content


def test_what_goes_back_is_what_the_sdks_take() -> None:
    found = {name: WRITERS[name].whole(REPLY, Asked(1, "m", {})) for name in DIALECTS}
    TypeAdapter(list[AssistantChatMessageV2]).validate_python(cohere.assistant_messages(found["cohere"]))
    mistral_models.AssistantMessage.model_validate(mistral.assistant_messages(found["mistral"])[0])
    Message.model_validate(ollama.assistant_messages(found["ollama"])[0])
    ToolV2.model_validate(cohere.schemas([TOOL])[0])
    mistral_models.Tool.model_validate(mistral.schemas([TOOL])[0])
    Tool.model_validate(ollama.schemas([TOOL])[0])


@pytest.mark.parametrize("name", DIALECTS)
def test_an_answer_of_another_shape_has_no_calls(name: str) -> None:
    nothing: dict[str, Any] = {"choices": [{"message": 5}], "message": [], "output": 3, "steps": {}}
    assert DIALECTS[name].tool_calls(nothing) == ()
    assert all(isinstance(message, dict) for message in DIALECTS[name].assistant_messages(nothing))
    with pytest.raises(InvalidRequest):
        DIALECTS[name].tool_calls(7)

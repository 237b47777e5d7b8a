"""One conversation on each API: what the toolset gives back is accepted by the official SDK's own types, and whole."""

import base64
import json
from typing import Any

import anyio
import pytest
from anthropic.types import MessageParam, ToolParam
from google.genai import types as google
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
from openai.types.responses import FunctionToolParam, ResponseInputItemParam
from pydantic import TypeAdapter

pytestmark = pytest.mark.anyio
ListOf: Any = list
"""`list`, of types that are known only when the test runs."""
CALLED = ("one__picture", "one__fail")


def chat() -> dict[str, Any]:
    calls = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for place, name in enumerate(CALLED)
    ]
    message = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": calls}
    return {"choices": [{"message": message}]}


def responses() -> dict[str, Any]:
    calls = [
        {"type": "function_call", "call_id": f"c{place}", "name": name, "arguments": "{}"}
        for place, name in enumerate(CALLED)
    ]
    return {"output": [{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "x"}, *calls]}


def anthropic() -> dict[str, Any]:
    calls = [{"type": "tool_use", "id": f"c{place}", "name": name, "input": {}} for place, name in enumerate(CALLED)]
    return {"content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, *calls]}


def gemini(**ids: str) -> dict[str, Any]:
    calls = [{"functionCall": {"name": name, "args": {}, **ids}, "thoughtSignature": "c2ln"} for name in CALLED]
    return {"candidates": [{"content": {"role": "model", "parts": calls}}]}


CASES = {
    "openai_chat": (chat, ChatCompletionMessageParam, ChatCompletionFunctionToolParam),
    "deepseek": (chat, ChatCompletionMessageParam, ChatCompletionFunctionToolParam),
    "openai_responses": (responses, ResponseInputItemParam, FunctionToolParam),
    "anthropic_messages": (anthropic, MessageParam, ToolParam),
    "gemini": (gemini, google.Content, google.Tool),
    "gemini_2_5": (gemini, google.Content, google.Tool),
}


@pytest.mark.parametrize("api", CASES)
async def test_a_turn_is_answered_in_the_form_of_the_api(in_process: Any, api: str) -> None:
    completion, message_type, tool_type = CASES[api]
    with anyio.fail_after(60):
        async with in_process() as gw:
            tools = gw.toolset(api=api)
            schemas = await tools.schemas()
            responded = await tools.respond(completion())
    more = {"async": False} if api == "openai_responses" else {}
    TypeAdapter(ListOf[tool_type]).validate_python([{**schema, **more} for schema in schemas])
    TypeAdapter(ListOf[message_type]).validate_python(list(responded))
    written = json.dumps(responded)
    picture = responded.results[0].envelope.blocks[1]
    assert written.count(picture.data) == 1, "the image is there, once"
    assert base64.b64decode(picture.data).startswith(b"\x89PNG")
    assert "It broke." in written
    assert responded.results[1].is_error
    assert tools.tool_call_count(completion()) == 2
    refused = tools.refuse(completion())
    assert refused.refused
    TypeAdapter(ListOf[message_type]).validate_python(list(refused))
    assert json.dumps(refused).count("Tool call refused") == 2
    assert refused[: -len(refused.after)] == responded[: -len(responded.after)]


async def test_results_for_gemini_calls_without_an_id_have_none(in_process: Any) -> None:
    async with in_process() as gw:
        tools = gw.toolset(api="gemini_2_5")
        (answer,) = (await tools.respond(gemini())).after
        (named,) = (await tools.respond(gemini(id="f"))).after
    assert [part["functionResponse"].get("id") for part in answer["parts"][:2]] == [None, None]
    assert "call ]" not in json.dumps(answer)
    assert [part["functionResponse"].get("id") for part in named["parts"][:2]] == ["f", "f"]

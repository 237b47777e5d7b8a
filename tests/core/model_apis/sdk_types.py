"""What the official SDKs' own types say of the messages of a turn, and the rules that stand beside them."""

import re
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter


def openai_chat(messages: list[Any]) -> None:
    from openai.types.chat import ChatCompletionMessageParam

    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(messages, strict=False)
    roles = [message["role"] for message in messages]
    assert roles == ["tool"] * roles.count("tool") + ["user"] * (len(roles) - roles.count("tool"))
    assert roles.count("user") <= 1
    for message in messages:
        if message["role"] == "tool" and isinstance(message["content"], list):
            assert all(part["type"] == "text" for part in message["content"])


def groq(messages: list[Any]) -> None:
    from groq.types.chat import ChatCompletionToolMessageParam

    TypeAdapter(list[ChatCompletionToolMessageParam]).validate_python(messages)


def lax(messages: list[Any]) -> None:
    from openai.types.chat import ChatCompletionUserMessageParam

    for message in messages:
        as_user = {"role": "user", "content": message["content"]}
        TypeAdapter(ChatCompletionUserMessageParam).validate_python(as_user)


def vllm(messages: list[Any]) -> None:
    """OpenAI's form, with vLLM's own `video_url` parts, and a reply of the assistant's before the user, if any."""
    from openai.types.chat import ChatCompletionAssistantMessageParam

    *_, before, last = [{"role": "tool"}, *messages]
    if before["role"] == "assistant":
        assert last["role"] == "user"
        TypeAdapter(ChatCompletionAssistantMessageParam).validate_python(before, strict=False)
    for message in (one for one in messages if one is not before or before["role"] != "assistant"):
        if isinstance(message["content"], list):
            kinds = {part["type"] for part in message["content"]}
            assert kinds <= {"text", "image_url", "input_audio", "video_url"}
            message = {**message, "content": [part for part in message["content"] if part["type"] != "video_url"]}
        (lax if message["role"] == "tool" else openai_chat)([message])


def openai_responses(items: list[Any]) -> None:
    from openai.types.responses import ResponseInputItemParam

    TypeAdapter(list[ResponseInputItemParam]).validate_python(items)


def anthropic(messages: list[Any]) -> None:
    from anthropic.types import MessageParam

    TypeAdapter(list[MessageParam]).validate_python(messages)
    (message,) = messages
    kinds = [block["type"] for block in message["content"]]
    assert kinds == sorted(kinds, key=lambda kind: kind != "tool_result"), "tool_result blocks come first"
    for block in message["content"]:
        inner = block.get("content", [])
        if block.get("is_error"):
            assert inner, "content cannot be empty if is_error is true"
            assert all(one["type"] == "text" for one in inner), "all content must be text if is_error is true"
        for one in [block, *inner]:
            assert one["type"] != "text" or one["text"].strip(), "text content blocks must be non-empty"


def gemini(contents: list[Any]) -> None:
    from google.genai import types

    (content,) = contents
    types.Content.model_validate(content)
    kinds = ["functionResponse" in part for part in content["parts"]]
    assert kinds == sorted(kinds, reverse=True), "responses come first"


def gemini_interactions(steps: list[Any]) -> None:
    for step in steps:
        assert set(step) == {"type", "call_id", "name", "is_error", "result"}
        for content in step["result"]:
            assert content["type"] in {"text", "image", "audio", "document", "video"}
            assert set(content) == ({"type", "text"} if content["type"] == "text" else {"type", "mime_type", "data"})


def bedrock(messages: list[Any]) -> None:
    import botocore.session
    from botocore.validate import ParamValidator

    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = service.operation_model("Converse").input_shape
    (message,) = messages
    report = ParamValidator().validate({"modelId": "m", "messages": messages}, shape)
    assert not report.has_errors(), report.generate_report()
    names = []
    for block in message["content"]:
        result = block["toolResult"]
        assert re.fullmatch(r"[a-zA-Z0-9_.:-]{1,64}", result["toolUseId"])
        assert result["status"] in ("success", "error")
        for inner in result["content"]:
            assert "text" not in inner or inner["text"].strip()
            if "image" in inner:
                assert inner["image"]["format"] in ("png", "jpeg", "gif", "webp")
            if "document" in inner:
                names.append(inner["document"]["name"])
                assert re.fullmatch(r"[A-Za-z0-9()\[\]-]+(?: [A-Za-z0-9()\[\]-]+)*", names[-1])
                assert any("text" in other for other in result["content"]), "a document needs text beside it"
    assert len(names) == len(set(names)) <= 5
    assert sum("image" in inner for block in message["content"] for inner in block["toolResult"]["content"]) <= 20


def mistral(messages: list[Any]) -> None:
    from mistralai.client import models

    for message in messages:
        kind = models.ToolMessage if message["role"] == "tool" else models.UserMessage
        kind.model_validate(message)


def cohere(messages: list[Any]) -> None:
    from cohere import types

    for message in messages:
        kind = types.ToolChatMessageV2 if message["role"] == "tool" else types.UserChatMessageV2
        kind.model_validate(message)


def ollama(messages: list[Any]) -> None:
    from ollama import Image, Message

    for message in messages:
        # The SDK's own type writes base64 as it comes; on the wire an image is that string.
        images = [Image(value=data) for data in message.get("images", [])]
        assert Message.model_validate({**message, "images": images}).model_dump()["images"] == message.get("images", [])


VALIDATORS: dict[str, Callable[[list[Any]], None]] = {
    "anthropic_messages": anthropic,
    "bedrock_converse": bedrock,
    "cohere": cohere,
    "gemini": gemini,
    "gemini_2_5": gemini,
    "gemini_interactions": gemini_interactions,
    "groq": groq,
    "mistral": mistral,
    "ollama": ollama,
    "openai_compat": lax,
    "openai_responses": openai_responses,
    "together": vllm,
    "vllm": vllm,
}

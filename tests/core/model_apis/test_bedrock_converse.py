"""Amazon Bedrock Converse: its answers, and its turns as botocore's own serializer writes them, encoded only once."""

import base64
import json
from typing import Any

import botocore.session
import pytest
from botocore.serialize import create_serializer
from botocore.validate import ParamValidator

import gateway
from gateway.config.store_settings import StoreSettings
from gateway.content.shaping.turns import lower_turn, lower_turn_now
from gateway.content.store import MemoryStore
from gateway.core.model_apis import bedrock_converse
from gateway.testing.model_apis import refusals, seen
from gateway.testing.model_apis.histories import history
from tests.core.model_apis import cases

pytestmark = pytest.mark.anyio
MADE = vars(cases)
CASES = MADE["CASES"]


def on_the_wire(messages: list[Any]) -> list[Any]:
    """The messages as a boto3 client that is given them sends them."""
    operation = botocore.session.get_session().get_service_model("bedrock-runtime").operation_model("Converse")
    parameters = {"modelId": "m", "messages": messages}
    report = ParamValidator().validate(parameters, operation.input_shape)
    assert not report.has_errors(), report.generate_report()
    written = create_serializer("rest-json", include_validation=False).serialize_to_request(parameters, operation)
    return json.loads(written["body"])["messages"]


@pytest.mark.parametrize("name", CASES)
async def test_what_boto3_sends_is_what_the_http_api_takes(name: str) -> None:
    calls = CASES[name].calls
    as_json = (await lower_turn(calls, "bedrock_converse")).messages
    for_boto3 = (await lower_turn(calls, "bedrock_boto3")).messages
    sent = on_the_wire(for_boto3)
    assert sent == as_json
    request = history("bedrock_converse", calls, sent)
    assert refusals("bedrock_converse", request) == ()
    assert len(seen("bedrock_converse", request)) == len(
        seen("bedrock_converse", history("bedrock_converse", calls, as_json))
    )


def test_a_tool_s_own_json_is_left_alone() -> None:
    raw = [{"json": {"source": {"bytes": "aGVsbG8="}}}]
    result = {"content": [], "_meta": {"mcp-gateway/raw": {"bedrock_converse": raw}}}
    turn = lower_turn_now([{"id": "call_0", "name": "look", "result": result}], "bedrock_boto3")
    assert turn.messages[0]["content"][0]["toolResult"]["content"] == raw


async def test_handles_in_a_history_become_bytes_once_and_other_messages_stay_the_same_objects() -> None:
    store = MemoryStore(StoreSettings())
    png = base64.b64decode(MADE["PNG"])
    handle = (await store.put(png, owner="local", media_type="image/png")).handle
    first = {"role": "user", "content": [{"text": "hello"}, {"image": {"format": "png", "source": {"bytes": png}}}]}
    messages = [first, {"role": "user", "content": [{"text": f"[image 1: image/png; handle {handle}]"}]}]
    resolved = await gateway.resolve_messages(messages, "bedrock_boto3", store)
    assert resolved.messages[0] is first
    assert resolved.messages[1]["content"][-1] == {"image": {"format": "png", "source": {"bytes": png}}}
    again = await gateway.resolve_messages(resolved.messages, "bedrock_boto3", store)
    assert again.messages == resolved.messages
    on_the_wire(again.messages)


def test_bedrock_keeps_bytes_and_leaves_blank_text_out() -> None:
    redacted = {"reasoningContent": {"redactedContent": b"hidden"}}
    content = [redacted, {"text": " "}, {"toolUse": {"toolUseId": "t", "name": "read", "input": {}}}]
    answer = {"output": {"message": {"role": "assistant", "content": content}}}
    assert bedrock_converse.assistant_messages(answer) == [{"role": "assistant", "content": [content[0], content[2]]}]
    assert bedrock_converse.assistant_messages({"output": {"message": {"content": [{"text": ""}]}}}) == []
    assert bedrock_converse.schemas([{"name": "read", "inputSchema": {"type": "object"}}])[0]["toolSpec"].keys() == {
        "name",
        "inputSchema",
    }


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

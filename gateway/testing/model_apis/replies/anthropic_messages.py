"""Replies of Anthropic's Messages API. https://docs.claude.com/en/docs/build-with-claude/streaming"""

from collections.abc import Iterator
from typing import Any

from gateway.testing.model_apis.replies.write_reply import Asked, Writer, compact, pieces, sse
from gateway.testing.model_apis.scripts import Reply

_SIGNATURE = "c2lnbmVk"


def _blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": _SIGNATURE})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    calls = [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in reply.calls]
    return [*blocks, *calls]


def _message(reply: Reply, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": _blocks(reply),
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }


def _events(reply: Reply, asked: Asked) -> Iterator[dict[str, Any]]:
    message = _message(reply, asked)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        begun, deltas = _PARTS[block["type"]](block)
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **begun}}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 10}}
    yield {"type": "message_stop"}


def _thinking(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
    signed = {"type": "signature_delta", "signature": block["signature"]}
    return {"thinking": "", "signature": ""}, [*deltas, signed]


def _text(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    return {"text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]


def _tool_use(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    # The first piece is empty, as in the real API.
    written = ["", *pieces(compact(block["input"]))]
    return {"input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in written]


_PARTS = {"thinking": _thinking, "text": _text, "tool_use": _tool_use}


def _error(message: str) -> dict[str, Any]:
    error = {"type": "invalid_request_error", "message": message}
    return {"type": "error", "error": error, "request_id": "req_stand_in"}


ANTHROPIC_MESSAGES = Writer(
    _message, lambda reply, asked: (sse(event, event["type"]) for event in _events(reply, asked)), _error
)

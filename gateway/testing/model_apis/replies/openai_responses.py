"""Replies of the Responses API. https://platform.openai.com/docs/api-reference/responses-streaming"""

from collections.abc import Iterator
from itertools import count
from typing import Any

from gateway.testing.model_apis.openai_responses import SEARCH
from gateway.testing.model_apis.replies.write_reply import MOMENT, Asked, Writer, compact, openai_error, pieces, sse
from gateway.testing.model_apis.scripts import Reply, ToolCall

_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 20,
}


def _items(reply: Reply, asked: Asked) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        items.append({"type": "reasoning", "id": f"rs_{asked.number}", "summary": summary})
    if reply.text or not reply.calls:
        content: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        message = {"type": "message", "id": f"msg_{asked.number}", "role": "assistant", "content": [content]}
        items.append({**message, "status": "completed"})
    return [*items, *(_call(call, asked) for call in reply.calls)]


def _call(call: ToolCall, asked: Asked) -> dict[str, Any]:
    made = {"call_id": call.id, "status": "completed"}
    if call.name == SEARCH and any(tool.get("type") == SEARCH for tool in asked.request.get("tools") or ()):
        search = {"execution": "client", "arguments": dict(call.arguments)}
        return {"type": "tool_search_call", "id": f"tsc_{call.id}", **made, **search}
    space, _, name = call.name.rpartition("/")
    function = {"name": name, **({"namespace": space} if space else {}), "arguments": compact(call.arguments)}
    return {"type": "function_call", "id": f"fc_{call.id}", **made, **function}


def _response(asked: Asked, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": MOMENT,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": asked.request.get("tools") or [],
        "top_p": 1.0,
        "usage": _USAGE if status == "completed" else None,
    }


def whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Return a completed `response`."""
    return _response(asked, "completed", _items(reply, asked))


def events(reply: Reply, asked: Asked) -> Iterator[str]:
    """Yield `response.created` to `response.completed`, numbered."""
    for number, event in zip(count(), _events(reply, asked), strict=False):
        yield sse({**event, "sequence_number": number}, event["type"])


def _events(reply: Reply, asked: Asked) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response(asked, "in_progress", [])}
    yield {"type": "response.in_progress", "response": _response(asked, "in_progress", [])}
    items = _items(reply, asked)
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        status = {"status": "in_progress"} if "status" in item else {}
        begun = {
            **item,
            **{name: empty for name, empty in _EMPTY.items() if type(item.get(name)) is type(empty)},
            **status,
        }
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        if fill := _FILLING.get(item["type"]):
            yield from fill(item, place)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": _response(asked, "completed", items)}


def _message(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part, place = item["content"][0], {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}


def _reasoning(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    part, place = item["summary"][0], {**place, "summary_index": 0}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
    yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _function_call(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **place, **done}


_EMPTY: dict[str, Any] = {"content": [], "summary": [], "arguments": ""}
_FILLING = {"message": _message, "reasoning": _reasoning, "function_call": _function_call}

OPENAI_RESPONSES = Writer(whole, events, openai_error)

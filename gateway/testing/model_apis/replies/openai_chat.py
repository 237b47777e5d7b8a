"""Replies of Chat Completions. Those of Mistral and Groq are the same, except for errors.

https://platform.openai.com/docs/api-reference/chat-streaming. Reasoning is `reasoning_content`, as DeepSeek, vLLM and
llama-server write it.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from gateway.testing.model_apis.replies.write_reply import MOMENT, Asked, Writer, compact, openai_error, pieces, sse
from gateway.testing.model_apis.scripts import Reply, ToolCall

_USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{asked.number}", "object": kind, "created": MOMENT, "model": asked.model}


def _finish(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _call(call: ToolCall, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Return a `chat.completion`."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [_call(call, compact(call.arguments)) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _USAGE}


def _deltas(reply: Reply, whole_calls: bool) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if reply.text or not reply.calls else None}
    yield from ({"reasoning_content": piece} for piece in pieces(reply.reasoning))
    yield from ({"content": piece} for piece in pieces(reply.text))
    for index, call in enumerate(reply.calls):
        if whole_calls:
            yield {"tool_calls": [{"index": index, **_call(call, compact(call.arguments))}]}
            continue
        yield {"tool_calls": [{"index": index, **_call(call, "")}]}
        for piece in pieces(compact(call.arguments)):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def events(reply: Reply, asked: Asked, *, whole_calls: bool = False) -> Iterator[str]:
    """Yield `chat.completion.chunk`s, then `[DONE]`. Calls come in pieces, or whole, as in Mistral's API."""
    head = _head(asked, "chat.completion.chunk")
    for delta in _deltas(reply, whole_calls):
        yield sse({**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]})
    yield sse({**head, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish(reply)}]})
    options: Mapping[str, Any] = asked.request.get("stream_options") or {}
    if options.get("include_usage"):
        yield sse({**head, "choices": [], "usage": _USAGE})
    yield "data: [DONE]\n\n"


def _mistral_error(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": "3000"}


def _groq_error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


OPENAI_CHAT = Writer(whole, events, openai_error)
MISTRAL = Writer(whole, partial(events, whole_calls=True), _mistral_error)
GROQ = Writer(whole, events, _groq_error)

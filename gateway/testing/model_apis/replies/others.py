"""Replies of Bedrock's Converse, Cohere's v2 chat and Ollama's /api/chat.

botocore 1.44.5, ConverseResponse (its stream is binary, and not supported here); cohere 7.3.1, V2ChatResponse and
V2ChatStreamResponse; https://docs.ollama.com/api/chat.
"""

from collections.abc import Iterator
from typing import Any

from gateway.testing.model_apis.replies.write_reply import Asked, Writer, compact, pieces, sse
from gateway.testing.model_apis.scripts import Reply


def _converse(reply: Reply, asked: Asked) -> dict[str, Any]:
    del asked
    thought = [{"reasoningContent": {"reasoningText": {"text": reply.reasoning}}}] if reply.reasoning else []
    text = [{"text": reply.text}] if reply.text else []
    calls = [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in reply.calls]
    return {
        "output": {"message": {"role": "assistant", "content": [*thought, *text, *calls]}},
        "stopReason": "tool_use" if reply.calls else "end_turn",
        "usage": {"inputTokens": 10, "outputTokens": 10, "totalTokens": 20},
        "metrics": {"latencyMs": 1},
    }


# -- Cohere -----------------------------------------------------------------------------------------


def _cohere_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": compact(call.arguments)}}
        for call in reply.calls
    ]


def _cohere_end(reply: Reply) -> dict[str, Any]:
    usage = {"tokens": {"input_tokens": 10, "output_tokens": 10}}
    return {"finish_reason": "TOOL_CALL" if reply.calls else "COMPLETE", "usage": usage}


def _cohere(reply: Reply, asked: Asked) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if reply.calls:
        message |= {"tool_plan": reply.reasoning or reply.text, "tool_calls": _cohere_calls(reply)}
    else:
        thought = [{"type": "thinking", "thinking": reply.reasoning}] if reply.reasoning else []
        message["content"] = [*thought, {"type": "text", "text": reply.text}]
    return {"id": f"cohere-{asked.number}", "message": message, **_cohere_end(reply)}


def _cohere_events(reply: Reply, asked: Asked) -> Iterator[str]:
    for event in _cohere_said(reply, _cohere(reply, asked)):
        yield sse(event, event["type"])


def _cohere_said(reply: Reply, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield _cohere_event("message-start", {"role": "assistant"}) | {"id": whole["id"]}
    for piece in pieces(whole["message"].get("tool_plan", "")):
        yield _cohere_event("tool-plan-delta", {"tool_plan": piece})
    for index, part in enumerate(whole["message"].get("content", ())):
        kind = part["type"]
        yield _cohere_event("content-start", {"content": {"type": kind, kind: ""}}, index)
        for piece in pieces(part[kind]):
            yield _cohere_event("content-delta", {"content": {kind: piece}}, index)
        yield {"type": "content-end", "index": index}
    for index, call in enumerate(_cohere_calls(reply)):
        begun = {**call, "function": {**call["function"], "arguments": ""}}
        yield _cohere_event("tool-call-start", {"tool_calls": begun}, index)
        for piece in pieces(call["function"]["arguments"]):
            yield _cohere_event("tool-call-delta", {"tool_calls": {"function": {"arguments": piece}}}, index)
        yield {"type": "tool-call-end", "index": index}
    yield {"type": "message-end", "id": whole["id"], "delta": _cohere_end(reply)}


def _cohere_event(kind: str, message: dict[str, Any], index: int | None = None) -> dict[str, Any]:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, "delta": {"message": message}}


# -- Ollama -----------------------------------------------------------------------------------------


def _ollama_head(asked: Asked) -> dict[str, Any]:
    return {"model": asked.model, "created_at": "2027-01-15T08:00:00.000000Z"}


def _ollama_end() -> dict[str, Any]:
    durations = {"total_duration": 1, "load_duration": 1, "prompt_eval_duration": 1, "eval_duration": 1}
    counts = {"prompt_eval_count": 10, "eval_count": 10}
    return {"done": True, "done_reason": "stop", **durations, **counts}


def _ollama_calls(reply: Reply) -> dict[str, Any]:
    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in reply.calls]
    return {"tool_calls": calls} if calls else {}


def _ollama(reply: Reply, asked: Asked) -> dict[str, Any]:
    thought = {"thinking": reply.reasoning} if reply.reasoning else {}
    message = {"role": "assistant", "content": reply.text, **thought, **_ollama_calls(reply)}
    return {**_ollama_head(asked), "message": message, **_ollama_end()}


def _ollama_events(reply: Reply, asked: Asked) -> Iterator[str]:
    said = [
        *({"content": "", "thinking": piece} for piece in pieces(reply.reasoning)),
        *({"content": piece} for piece in pieces(reply.text)),
        *([{"content": "", **_ollama_calls(reply)}] if reply.calls else []),
    ]
    for message in said:
        yield compact({**_ollama_head(asked), "message": {"role": "assistant", **message}, "done": False}) + "\n"
    last = {"role": "assistant", "content": ""}
    yield compact({**_ollama_head(asked), "message": last, **_ollama_end()}) + "\n"


BEDROCK_CONVERSE = Writer(_converse, None, lambda message: {"message": message})
COHERE = Writer(_cohere, _cohere_events, lambda message: {"message": message})
OLLAMA = Writer(_ollama, _ollama_events, lambda message: {"error": message}, "application/x-ndjson")

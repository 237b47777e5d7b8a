"""Complete requests around the messages of one turn in each API's form: a question, the calls, then the messages."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Calls = Sequence[Mapping[str, Any]]
"""Calls with `id`, `name` and, if any, `arguments`."""


def history(api: str, calls: Calls, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a request in which a user asks, the model makes `calls`, and `messages` follow.

    `messages` is the value of `gateway.lower_turn` for these calls. Targets that are profiles get their API's form.
    """
    return _FORMS.get(api, _chat)(calls, list(messages))


def _arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    return dict(call.get("arguments") or {})


def _functions(calls: Calls) -> list[dict[str, Any]]:
    names = dict.fromkeys(call["name"] for call in calls)
    return [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in names]


def _chat(calls: Calls, messages: list[Any]) -> dict[str, Any]:
    made = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(_arguments(call))},
        }
        for call in calls
    ]
    asked = {"role": "user", "content": "Please look."}
    assistant = {"role": "assistant", "content": "", "tool_calls": made}
    return {"model": "stand-in", "messages": [asked, assistant, *messages], "tools": _functions(calls)}


def _ollama(calls: Calls, messages: list[Any]) -> dict[str, Any]:
    made = [{"function": {"name": call["name"], "arguments": _arguments(call)}} for call in calls]
    asked = {"role": "user", "content": "Please look."}
    assistant = {"role": "assistant", "content": "", "tool_calls": made}
    return {"model": "stand-in", "messages": [asked, assistant, *messages], "tools": _functions(calls)}


def _responses(calls: Calls, messages: list[Any]) -> dict[str, Any]:
    made = [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": call["name"],
            "arguments": json.dumps(_arguments(call)),
        }
        for call in calls
    ]
    tools = [{"type": "function", **tool["function"]} for tool in _functions(calls)]
    asked = {"role": "user", "content": "Please look."}
    return {"model": "stand-in", "input": [asked, *made, *messages], "tools": tools}


def _anthropic(calls: Calls, messages: list[Any]) -> dict[str, Any]:
    made = [{"type": "tool_use", "id": call["id"], "name": call["name"], "input": _arguments(call)} for call in calls]
    tools = [{"name": tool["function"]["name"], "input_schema": {"type": "object"}} for tool in _functions(calls)]
    spoken = [{"role": "user", "content": "Please look."}, {"role": "assistant", "content": made}]
    return {"model": "stand-in", "max_tokens": 1_000, "messages": [*spoken, *messages], "tools": tools}


def _gemini(calls: Calls, messages: list[Any]) -> dict[str, Any]:
    made = [
        {
            "functionCall": {"id": call["id"], "name": call["name"], "args": _arguments(call)},
            "thoughtSignature": "c2lnbmVk",
        }
        for call in calls
    ]
    spoken = [{"role": "user", "parts": [{"text": "Please look."}]}, {"role": "model", "parts": made}]
    declared = [{"name": tool["function"]["name"]} for tool in _functions(calls)]
    return {"contents": [*spoken, *messages], "tools": [{"functionDeclarations": declared}]}


def _interactions(calls: Calls, messages: list[Any]) -> dict[str, Any]:
    made = [
        {"type": "function_call", "id": call["id"], "name": call["name"], "arguments": _arguments(call)}
        for call in calls
    ]
    asked = {"type": "user_input", "content": [{"type": "text", "text": "Please look."}]}
    tools = [{"type": "function", "name": tool["function"]["name"]} for tool in _functions(calls)]
    return {"model": "stand-in", "input": [asked, *made, *messages], "tools": tools}


def _bedrock(calls: Calls, messages: list[Any]) -> dict[str, Any]:
    made = [{"toolUse": {"toolUseId": call["id"], "name": call["name"], "input": _arguments(call)}} for call in calls]
    spoken = [{"role": "user", "content": [{"text": "Please look."}]}, {"role": "assistant", "content": made}]
    tools = [
        {"toolSpec": {"name": tool["function"]["name"], "inputSchema": {"json": {"type": "object"}}}}
        for tool in _functions(calls)
    ]
    return {"messages": [*spoken, *messages], "toolConfig": {"tools": tools}}


_FORMS: Mapping[str, Callable[[Calls, list[Any]], dict[str, Any]]] = {
    "openai_responses": _responses,
    "anthropic_messages": _anthropic,
    "gemini": _gemini,
    "gemini_2_5": _gemini,
    "gemini_interactions": _interactions,
    "bedrock_converse": _bedrock,
    "ollama": _ollama,
}

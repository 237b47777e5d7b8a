"""OpenAI Chat Completions, and every API that speaks its form.

https://platform.openai.com/docs/api-reference/chat/create; openai 3.52.0 (ChatCompletion, FunctionDefinition).
Reasoning stands in members that OpenAI itself does not have: `reasoning_content` (DeepSeek, vLLM), `reasoning_details`
(OpenRouter).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.texts import cut
from gateway.core.model_apis.completions import (
    ToolCall,
    chunks_as_json,
    first_message,
    joined_choice,
    mapping,
    objects,
    tool_call,
    without,
)
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.model_apis.tool_schemas.strict_schemas import strict_tool
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""FunctionDefinition.name: "a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64"."""

_LONGEST_DESCRIPTION = 1024
"""`string_above_max_length` of tools[].function.description (modelcontextprotocol/servers#799)."""

_ONLY_ANSWERED = ("annotations", "function_call", "parsed")
"""Members of an answered message that a request does not have."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """MCP tools as `tools` of a request: `{"type": "function", "function": {...}}` each."""
    return [{"type": "function", "function": {**_function(tool), "parameters": parameters(tool)}} for tool in tools]


def strict_schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same in strict mode, which the SDK's `parse` and `stream` ask for."""
    return [{"type": "function", "function": _strict_function(tool)} for tool in tools]


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool["name"]}
    if description := tool.get("description"):
        function["description"] = cut(description, _LONGEST_DESCRIPTION)
    return function


def _strict_function(tool: Mapping[str, Any]) -> dict[str, Any]:
    strict = strict_tool(tool)
    return {**_function(tool), "parameters": strict.parameters, "strict": strict.is_strict}


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The calls of the first choice. Raises InvalidRequest: `completion` is none."""
    return tuple(_call(call) for call in _message(completion).get("tool_calls", ()))


def _call(call: Mapping[str, Any]) -> ToolCall:
    # A custom tool's input is free text. The toolset offers none, and every call has to be answered all the same.
    function, custom = mapping(call.get("function")), mapping(call.get("custom"))
    return tool_call(
        call.get("id"), function.get("name") or custom.get("name"), function.get("arguments") or custom.get("input")
    )


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """The one assistant's message as the history takes it, reasoning and unknown members kept."""
    return [_message(completion)]


def _message(completion: Any) -> dict[str, Any]:
    message = without(first_message(completion), *_ONLY_ANSWERED)
    calls = objects(message.pop("tool_calls", None))
    if sound := mapping(message.get("audio")).get("id"):
        message["audio"] = {"id": sound}
    if calls:
        # Some servers give calls no id, and streams leave their place in them.
        message["tool_calls"] = [
            {**_written(call), "id": call.get("id") or f"call_{place}"} for place, call in enumerate(calls)
        ]
    # Content has to be there, and may be null only beside something else.
    content = None if calls or "refusal" in message or "audio" in message else ""
    return {"role": "assistant", "content": content, **message}


def _written(call: dict[str, Any]) -> dict[str, Any]:
    """A call as the model wrote it, without what the SDK's `parse` adds."""
    call = without(call, "index")
    if function := mapping(call.get("function")):
        call["function"] = without(function, "parsed_arguments")
    return call


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The completion that the chunks of a stream come to: its first choice. Raises InvalidRequest: there are none."""
    return joined_choice(chunks_as_json(chunks))

"""Amazon Bedrock Converse: the message of the output goes back as it is.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html; botocore 1.44.5 (ConverseResponse,
ToolSpecification). Reasoning goes back whole, with its signature: boto3 gives and takes redacted reasoning as bytes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model_apis.completions import (
    ToolCall,
    as_json,
    chunks_as_json,
    gathered,
    mapping,
    objects,
    parsed,
    tool_call,
)
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.tools.catalogue.names import NameRules

NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""ToolSpecification.name: `[a-zA-Z0-9_-]+`, 64 characters."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """MCP tools as `toolConfig.tools` of a request: `{"toolSpec": {...}}` each."""
    return [{"toolSpec": _spec(tool)} for tool in tools]


def _spec(tool: Mapping[str, Any]) -> dict[str, Any]:
    # A description may be left out, and must not be empty.
    description = {"description": text} if (text := (tool.get("description") or "").strip()) else {}
    return {"name": tool["name"], **description, "inputSchema": {"json": parameters(tool)}}


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """The toolUse blocks, in order. Raises InvalidRequest: `completion` is not a response."""
    calls = [mapping(block.get("toolUse")) for block in _content(completion)]
    return tuple(tool_call(call.get("toolUseId"), call["name"], call.get("input")) for call in calls if "name" in call)


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """The assistant's message; none where the model said nothing, because content must not be empty."""
    # Blank text is answered sometimes, and refused in a request.
    content = [block for block in _content(completion) if "text" not in block or str(block["text"]).strip()]
    for block in content:
        if isinstance((call := mapping(block.get("toolUse"))).get("input"), str):
            block["toolUse"] = {**call, "input": {}}  # malformed, and answered as that; the API takes objects only
    return [{"role": "assistant", "content": content}] if content else []


def _content(completion: Any) -> list[dict[str, Any]]:
    message = mapping(mapping(as_json(completion).get("output")).get("message"))
    return objects(message.get("content"))


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """The response that the events of `converse_stream` come to. Raises InvalidRequest: there are none.

    https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStreamOutput.html
    """
    blocks: dict[Any, dict[str, Any]] = {}
    for event in chunks_as_json(chunks):
        for piece, member in ((event.get("contentBlockStart"), "start"), (event.get("contentBlockDelta"), "delta")):
            block = mapping(piece)
            if block:
                gathered(blocks.setdefault(block.get("contentBlockIndex"), {}), mapping(block.get(member)))
    content = [_whole(block) for block in blocks.values() if block]
    return {"output": {"message": {"role": "assistant", "content": content}}}


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """A block as `converse` answers it: input is an object, and the text of reasoning stands one level deeper."""
    call = mapping(block.get("toolUse"))
    if call:
        return {"toolUse": {**call, "input": parsed(call.get("input", ""))}}
    reasoning = mapping(block.get("reasoningContent"))
    if "text" in reasoning:
        return {"reasoningContent": {"reasoningText": dict(reasoning)}}
    return block

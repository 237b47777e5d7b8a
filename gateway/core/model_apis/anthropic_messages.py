"""Anthropic Messages: the content of a response becomes the content of the assistant's message.

https://docs.claude.com/en/api/messages; anthropic 2.11.0 (Message, ToolParam).

- Completions: thinking is returned whole, with its signature:
  https://docs.claude.com/en/docs/build-with-claude/extended-thinking, "Preserving thinking blocks".
- Turns: all tool_result blocks come first in one user message, followed by what is not allowed in them. A tool_result
  holds text, image and document blocks; with `is_error`, only text; text blocks must not be empty:
  https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use.
- Requests: results are `tool_result` blocks of user messages, with a string or a list of blocks.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.turn import Answer, Media, Part, Turn, Words
from gateway.core.model_apis.completions import ToolCall, chunks_as_json, completion_with, gathered, parsed, tool_call
from gateway.core.model_apis.requests.found_results import Finder, FoundTurn, Native, RepairedTurn
from gateway.core.model_apis.requests.request_edits import WriteTurn, following, put_content
from gateway.core.model_apis.sdk_json import numbered_objects, objects_without_nulls, without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use: `^[a-zA-Z0-9_-]{1,64}$`."""

_ONLY_ANSWERED = ("parsed_output",)
"""Members that the SDK's `parse` adds to text."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools to `tools` of a request: `{"name": ..., "description": ..., "input_schema": ...}` each."""
    return [
        {"name": tool["name"], "description": tool.get("description") or "", "input_schema": parameters(tool)}
        for tool in tools
    ]


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the tool_use blocks in order, but not the API's own tool calls. Raises InvalidRequest: no message."""
    return tuple(
        tool_call(block.get("id"), block.get("name"), block.get("input"))
        for block in _blocks(completion)
        if block.get("type") == "tool_use"
    )


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return the assistant's message; empty if the model said nothing, because the content must not be empty."""
    blocks = [without_nulls(block, *_ONLY_ANSWERED) for block in _blocks(completion)]
    # "text content blocks must be non-empty" applies to requests only.
    content = [block for block in blocks if block.get("type") != "text" or str(block.get("text", "")).strip()]
    for block in content:
        if isinstance(block.get("input"), str):
            block["input"] = {}  # malformed, and answered as such; the API accepts only objects
    return [{"role": "assistant", "content": content}] if content else []


def _blocks(completion: Any) -> list[dict[str, Any]]:
    return objects_without_nulls(completion_with(completion, "content")["content"])


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the events of a stream into a message. Raises InvalidRequest: there are no events.

    https://docs.claude.com/en/docs/build-with-claude/streaming
    """
    blocks: dict[Any, dict[str, Any]] = {}
    for event in chunks_as_json(chunks):
        if event.get("type") == "content_block_start":
            blocks[event.get("index")] = without_nulls(as_object(event.get("content_block")))
        elif event.get("type") == "content_block_delta" and (block := blocks.get(event.get("index"))) is not None:
            _add(block, as_object(event.get("delta")))
    content = [
        {**block, **({"input": parsed(block["input"])} if "input" in block else {})} for block in blocks.values()
    ]
    return {"role": "assistant", "content": content}


def _add(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    match delta.get("type"):
        case "input_json_delta":
            # The input in the start event is an empty object; JSON text follows in pieces.
            written = block["input"] if isinstance(block.get("input"), str) else ""
            block["input"] = written + str(delta.get("partial_json") or "") or block.get("input")
        case "citations_delta":
            gathered(block, {"citations": [delta.get("citation")]})
        case _:
            gathered(block, without_nulls(delta, "type"))


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the one user message that follows the assistant's."""
    content = [_tool_result(answer) for answer in turn.answers]
    content += [write_part(part) for part in turn.follow_up_parts]
    return [{"role": "user", "content": content}]


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user message with these parts."""
    return {"role": "user", "content": [write_part(part) for part in parts]}


def _tool_result(answer: Answer) -> dict[str, Any]:
    blocks = [write_part(part) for part in answer.parts if not (isinstance(part, Words) and not part.text.strip())]
    if answer.raw is not None:
        blocks = answer.raw
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": answer.call.id}
    if blocks:
        result["content"] = blocks
    if answer.is_error:
        result["is_error"] = True
    return result


def write_part(part: Part) -> dict[str, Any]:
    """Write one content block: `text`, `image` or `document`."""
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    if part.kind == "image":
        return {"type": "image", "source": _source(part)}
    return {"type": "document", "source": _source(part), **_titled(part)}


def _source(media: Media) -> dict[str, str]:
    if media.file_id:
        return {"type": "file", "file_id": media.file_id}
    if media.ref:
        return {"type": "url", "url": media.url}
    return {"type": "base64", "media_type": media.media_type, "data": media.data}


def _titled(media: Media) -> dict[str, str]:
    return {"title": media.title} if media.title else {}


# -- Tool results in a request -----------------------------------------------------------------------------------------


_NATIVE: Native = {"text": {"text": str}, "image": {"source": dict}, "document": {"source": dict}}


def find_results(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """Find the turns with media in their results: the `tool_result` blocks of one message."""
    finder = Finder()
    for place, message in numbered_objects(request.get("messages")):
        last = None
        for index, block in numbered_objects(message.get("content")):
            if block.get("type") == "tool_use":
                finder.called(block.get("id"), block.get("name"))
            elif block.get("type") == "tool_result":
                last = index
                where = ("messages", place, "content", index, "content")
                call = finder.result(block.get("tool_use_id"))
                is_error = block.get("is_error") is True
                finder.parts(where, call, block.get("content"), _NATIVE, is_error=is_error)
        if last is not None:
            finder.end_turn(("messages", place, "content", last + 1))
    return tuple(finder.turns)


def put_result(holder: Any, key: Any, answer: Answer, write: WriteTurn) -> None:
    """Replace the content of a `tool_result`, or one of its blocks."""
    result: Any = write(Turn((answer,)))[0]["content"][0]
    put_content(holder, key, result.get("content") or [], "text")
    if result.get("is_error") and not isinstance(holder, list):
        holder["is_error"] = True


def follow_up(turn: RepairedTurn, write: WriteTurn) -> list[Any]:
    """Write the blocks that follow the results of the same message."""
    return following(turn, write, "text")

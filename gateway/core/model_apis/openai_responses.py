"""OpenAI Responses: the items of the output are input of the next request.

https://platform.openai.com/docs/api-reference/responses/create; openai 3.52.0 (Response, FunctionToolParam).

- Completions: reasoning items are returned unchanged, with their `encrypted_content` if requested (`include`).
- Turns: `function_call_output` items hold text, images and files themselves (`output`: a string, or a list of
  input_text, input_image and input_file; sound is not possible).
- Requests: results are the `input[]` items with the output of a call, as a string or a list of parts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.turn import Answer, Media, Part, Turn, Words
from gateway.core.model_apis.completions import ToolCall, chunks_as_json, completion_with, tool_call
from gateway.core.model_apis.requests.found_results import Finder, FoundTurn, Native, RepairedTurn
from gateway.core.model_apis.requests.request_edits import WriteTurn, following, put_content
from gateway.core.model_apis.sdk_json import numbered_objects, objects_without_nulls, without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.model_apis.tool_schemas.strict_schemas import strict_tool
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""As in Chat Completions."""

_ONLY_ANSWERED = ("parsed_arguments", "parsed")
"""Members that the SDK's `parse` adds to items and to their content."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools to `tools` of a request: `{"type": "function", "name": ..., ...}` each.

    `strict` is turned off explicitly, because it is on by default: few tools' schemas are in the subset that it allows.
    """
    return [_function(tool, parameters(tool), False) for tool in tools]


def strict_schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools for strict mode, in which the model's arguments always fit the schema."""
    every = [(tool, strict_tool(tool)) for tool in tools]
    return [_function(tool, strict.parameters, strict.is_strict) for tool, strict in every]


def _function(tool: Mapping[str, Any], taken: Mapping[str, Any], strict: bool) -> dict[str, Any]:
    named = {"name": tool["name"], "description": tool.get("description") or ""}
    return {"type": "function", **named, "parameters": taken, "strict": strict}


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the function calls of the output, in order. Raises InvalidRequest: `completion` is not a response."""
    return tuple(
        tool_call(item.get("call_id"), item.get("name"), item.get("arguments"))
        for item in objects_without_nulls(completion_with(completion, "output").get("output"))
        if item.get("type") == "function_call"
    )


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return every item of the output in the form for input."""
    return [_item(item) for item in objects_without_nulls(completion_with(completion, "output").get("output"))]


def _item(item: dict[str, Any]) -> dict[str, Any]:
    item = without_nulls(item, *_ONLY_ANSWERED)
    if item.get("type") == "message":
        item["content"] = [without_nulls(part, *_ONLY_ANSWERED) for part in objects_without_nulls(item.get("content"))]
    return item


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the events of a stream into a response. Raises InvalidRequest: there are no events.

    If the stream broke off, it has the items that were complete.
    """
    events = chunks_as_json(chunks)
    whole = next((as_object(event.get("response")) for event in events if event.get("type") in _ENDS), None)
    done = [as_object(event.get("item")) for event in events if event.get("type") == "response.output_item.done"]
    return dict(whole) if whole is not None else {"output": done}


_ENDS = ("response.completed", "response.incomplete", "response.failed")


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the input items after the model's calls: one `function_call_output` each, then at most one user message."""
    items = [_output(answer) for answer in turn.answers]
    if turn.follow_ups:
        items.append(user_message(turn.follow_up_parts))
    return items


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user message with these parts."""
    return {"type": "message", "role": "user", "content": [write_part(part) for part in parts]}


def _output(answer: Answer) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": answer.call.id, "output": answer.content(write_part)}


def write_part(part: Part) -> dict[str, Any]:
    """Write one part: `input_text`, `input_image` or `input_file`, the latter two also by file id or address."""
    if isinstance(part, Words):
        return {"type": "input_text", "text": part.text}
    if part.kind == "image":
        source = {"file_id": part.file_id} if part.file_id else {"image_url": part.url}
        return {"type": "input_image", **source, "detail": part.detail or "auto"}
    if part.ref:
        return {"type": "input_file", "file_id" if part.file_id else "file_url": part.ref.value}
    return {"type": "input_file", "filename": _file_name(part), "file_data": part.url}


def _file_name(media: Media) -> str:
    return media.title or f"{media.label.replace(' ', '-')}.pdf"


# -- Tool results in a request -----------------------------------------------------------------------------------------


_NATIVE: Native = {
    "input_text": {"text": str},
    "input_image": {"image_url": str, "file_id": str},
    "input_file": {"file_data": str, "file_id": str, "file_url": str},
}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_WITHIN_A_TURN = (*_OUTPUTS, "function_call", "custom_tool_call", "reasoning")


def find_results(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """Find the turns with media in their results: outputs with nothing but calls between them."""
    finder = Finder()
    items = numbered_objects(request.get("input"))
    for place, item in items:
        kind = item.get("type")
        if kind not in _WITHIN_A_TURN:
            finder.end_turn(("input", place))
        elif kind in _OUTPUTS:
            call = finder.result(item.get("call_id"))
            finder.parts(("input", place, "output"), call, item.get("output"), _NATIVE)
        else:
            finder.called(item.get("call_id"), item.get("name"))
    finder.end_turn(("input", items[-1][0] + 1 if items else 0))
    return tuple(finder.turns)


def put_result(holder: Any, key: Any, answer: Answer, write: WriteTurn) -> None:
    """Replace an item's output, or one of its parts."""
    put_content(holder, key, write(Turn((answer,)))[0]["output"], "input_text")


def follow_up(turn: RepairedTurn, write: WriteTurn) -> list[Any]:
    """Write one user message."""
    return [{"type": "message", "role": "user", "content": following(turn, write, "input_text")}]

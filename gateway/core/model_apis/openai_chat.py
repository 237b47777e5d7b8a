"""OpenAI Chat Completions, and every API that uses its format (llama-server, vLLM, Groq ...).

https://platform.openai.com/docs/api-reference/chat/create; openai 3.52.0 (ChatCompletion, FunctionDefinition).

- Completions: reasoning is in members that OpenAI itself does not have: `reasoning_content` (DeepSeek, vLLM),
  `reasoning_details` (OpenRouter).
- Turns: tool messages for all calls come first, without anything between them; media that is not allowed in them
  follows in one user message. A tool message holds text, a user message text, image_url, input_audio and file parts.
- Requests: results are `messages[]` with `role: tool` (or `function`), whose content is a string or a list of parts.
  Clients put there strings of JSON (the AI SDK, Cline), MCP's and Anthropic's image blocks, and `image_url` parts
  (LangChain).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.json_values import as_object
from gateway.core.model.texts import cut
from gateway.core.model.turn import Answer, Part, Turn, Words, reply_messages
from gateway.core.model_apis.completions import ToolCall, chunks_as_json, first_message, joined_choice, tool_call
from gateway.core.model_apis.requests.found_results import Finder, FoundTurn, Native, RepairedTurn
from gateway.core.model_apis.requests.request_edits import WriteTurn, following, put_content
from gateway.core.model_apis.sdk_json import numbered_objects, objects_without_nulls, without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import parameters
from gateway.core.model_apis.tool_schemas.strict_schemas import strict_tool
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""FunctionDefinition.name: "a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of 64"."""

_LONGEST_DESCRIPTION = 1024
"""`string_above_max_length` of tools[].function.description (modelcontextprotocol/servers#799)."""

_ONLY_ANSWERED = ("annotations", "function_call", "parsed")
"""Members of a response message that a request does not have."""


def schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools to `tools` of a request: `{"type": "function", "function": {...}}` each."""
    return [{"type": "function", "function": {**_function(tool), "parameters": parameters(tool)}} for tool in tools]


def strict_schemas(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert MCP tools for strict mode, which the SDK's `parse` and `stream` require."""
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
    """Return the calls of the first choice. Raises InvalidRequest: `completion` is not a completion."""
    return tuple(_call(call) for call in _message(completion).get("tool_calls", ()))


def _call(call: Mapping[str, Any]) -> ToolCall:
    # A custom tool's input is free text. The toolset offers none, but every call must be answered.
    function, custom = as_object(call.get("function")), as_object(call.get("custom"))
    return tool_call(
        call.get("id"), function.get("name") or custom.get("name"), function.get("arguments") or custom.get("input")
    )


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return the one assistant message in the form for a history, with reasoning and unknown members."""
    return [_message(completion)]


def _message(completion: Any) -> dict[str, Any]:
    message = without_nulls(first_message(completion), *_ONLY_ANSWERED)
    calls = objects_without_nulls(message.pop("tool_calls", None))
    if sound := as_object(message.get("audio")).get("id"):
        message["audio"] = {"id": sound}
    if calls:
        # Some servers give calls no id, and calls from streams still have their index.
        message["tool_calls"] = [
            {**_written(call), "id": call.get("id") or f"call_{place}"} for place, call in enumerate(calls)
        ]
    # Content is required, and may be null only beside something else.
    content = None if calls or "refusal" in message or "audio" in message else ""
    return {"role": "assistant", "content": content, **message}


def _written(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call as the model wrote it, without what the SDK's `parse` adds."""
    call = without_nulls(call, "index")
    if function := as_object(call.get("function")):
        call["function"] = without_nulls(function, "parsed_arguments")
    return call


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the chunks of a stream into a completion: its first choice. Raises InvalidRequest: there are no chunks."""
    return joined_choice(chunks_as_json(chunks))


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


_AUDIO_FORMATS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the messages after the assistant's: `{"role": "tool", ...}` for each call, then at most one `role: user`.

    A turn with a reply has it as an assistant message before the user message.
    """
    messages = [_tool_message(answer) for answer in turn.answers]
    if turn.follow_ups:
        messages += [*reply_messages(turn.reply), user_message(turn.follow_up_parts)]
    return messages


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user message with these parts."""
    return {"role": "user", "content": [write_part(part) for part in parts]}


def write_part(part: Part) -> dict[str, Any]:
    """Write one content part: `text`, `image_url`, `input_audio`, `file`, or vLLM's `video_url`."""
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    if part.file_id:
        return {"type": "file", "file": {"file_id": part.file_id}}
    match part.kind:
        case "image":
            detail = {"detail": part.detail} if part.detail else {}
            return {"type": "image_url", "image_url": {"url": part.url, **detail}}
        case "audio":
            audio_format = _AUDIO_FORMATS.get(part.media_type, part.media_type.removeprefix("audio/"))
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": audio_format}}
        case "document":
            name = part.title or f"{part.label.replace(' ', '-')}.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": part.url}}
        case "video":
            return {"type": "video_url", "video_url": {"url": part.url}}


def _tool_message(answer: Answer) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": answer.call.id, "content": answer.content(write_part)}


# -- Tool results in a request -----------------------------------------------------------------------------------------


_MEDIA = ("image_url", "input_audio", "file", "audio_url", "video_url")
_NATIVE: Native = {"text": {"text": str}, **{kind: {kind: dict} for kind in _MEDIA}}
_ANSWERS = ("tool", "function")


def find_results(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """Find the turns with media in their results: consecutive messages of tools."""
    finder = Finder()
    messages = numbered_objects(request.get("messages"))
    for place, message in messages:
        if message.get("role") not in _ANSWERS:
            finder.end_turn(("messages", place))
            _note_calls(finder, message)
            continue
        call = finder.result(message.get("tool_call_id"), message.get("name"))
        finder.parts(("messages", place, "content"), call, message.get("content"), _NATIVE)
    finder.end_turn(("messages", messages[-1][0] + 1 if messages else 0))
    return tuple(finder.turns)


def _note_calls(finder: Finder, message: Mapping[str, Any]) -> None:
    for _, called in numbered_objects(message.get("tool_calls")):
        for _, function in numbered_objects([called.get("function")]):
            finder.called(called.get("id"), function.get("name"))


def put_result(holder: Any, key: Any, answer: Answer, write: WriteTurn) -> None:
    """Replace the content of a message, or one of its parts."""
    put_content(holder, key, write(Turn((answer,)))[0]["content"], "text")


def follow_up(turn: RepairedTurn, write: WriteTurn) -> list[Any]:
    """Write one user message, preceded by a reply of the assistant if the turn has one."""
    return [*reply_messages(turn.reply), {"role": "user", "content": following(turn, write, "text")}]

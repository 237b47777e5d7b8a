"""Ollama's /api/chat: messages are returned unchanged. Calls have no id: results are matched to them by order.

https://docs.ollama.com/api/chat; ollama 0.6.3 (ChatResponse, Message, Tool).

- Turns: a message's images are beside its text (message: role, content, images as base64, tool_name).
- Requests: results are messages with `role: tool`, text in `content` and base64 in `images`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.core.model.base64_text import mend
from gateway.core.model.json_values import as_list, as_object
from gateway.core.model.turn import Answer, Media, Part, Turn, Words, reply_messages
from gateway.core.model_apis.completions import (
    ToolCall,
    assistant_message,
    chunks_as_json,
    function_calls,
    gathered,
    only_message,
)
from gateway.core.model_apis.requests.find_lines import handles_in
from gateway.core.model_apis.requests.found_results import Finder, FoundTurn, RepairedTurn
from gateway.core.model_apis.requests.request_edits import WriteTurn
from gateway.core.model_apis.requests.result_formats import envelope_of, has_media
from gateway.core.model_apis.sdk_json import numbered_objects, without_nulls
from gateway.core.model_apis.tool_schemas.input_schemas import functions
from gateway.core.tools.catalogue.names import NameRules

# -- Describing tools and reading a completion -------------------------------------------------------------------------


NAMES = NameRules(64, re.compile("[^A-Za-z0-9_-]"))
"""The names that the models' templates are made for; the server itself checks nothing."""


schemas = functions


def tool_calls(completion: Any) -> tuple[ToolCall, ...]:
    """Return the calls of the message, in order, without ids. Raises InvalidRequest: `completion` is not a response."""
    return function_calls(only_message(completion).get("tool_calls"))


def assistant_messages(completion: Any) -> list[dict[str, Any]]:
    """Return the one assistant message, its thinking included."""
    return [assistant_message(only_message(completion))]


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """Join the lines of a stream into a response. Raises InvalidRequest: there are no lines."""
    message: dict[str, Any] = {}
    for chunk in chunks_as_json(chunks):
        gathered(message, without_nulls(as_object(chunk.get("message"))), "role")
    return {"message": message}


# -- Lowering a turn ---------------------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[dict[str, Any]]:
    """Write the messages after the assistant's: one tool message for each call, then at most one user message."""
    messages = [_tool_message(answer) for answer in turn.answers]
    if turn.follow_ups:
        messages += [*reply_messages(turn.reply), user_message(turn.follow_up_parts)]
    return messages


def user_message(parts: Sequence[Part]) -> dict[str, Any]:
    """Write a user message with these parts, images beside the text."""
    words = "\n".join(part.text for part in parts if isinstance(part, Words))
    return {"role": "user", "content": words, "images": [part.data for part in parts if isinstance(part, Media)]}


def write_part(part: Part) -> str:
    """Write a part by itself: as messages have no parts, this is text, or the base64 of an image."""
    return part.text if isinstance(part, Words) else part.data


def _tool_message(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "tool", "tool_name": answer.call.name, "content": answer.text}
    if answer.raw is not None:
        return {**message, "content": "", **answer.raw}
    if images := [media.data for media in answer.media]:
        message["images"] = images
    return message


# -- Tool results in a request -----------------------------------------------------------------------------------------


def find_results(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """Find the turns with media in their results: consecutive messages of tools."""
    finder = Finder()
    messages = numbered_objects(request.get("messages"))
    for place, message in messages:
        if message.get("role") != "tool":
            finder.end_turn(("messages", place))
            continue
        call = finder.result(message.get("tool_call_id"), message.get("tool_name") or message.get("name"))
        said = envelope_of(message.get("content") or "")
        images = as_list(message.get("images"))
        beside = [block for data in images for block in envelope_of({"type": "image", "data": data}).blocks]
        exact = all(isinstance(data, str) and mend(data).mended == () for data in images)
        native = exact and not has_media(said) and not handles_in(said)
        whole = said.model_copy(update={"blocks": (*said.blocks, *beside)})
        finder.envelope(("messages", place), call, whole, native=native)
    finder.end_turn(("messages", messages[-1][0] + 1 if messages else 0))
    return tuple(finder.turns)


def put_result(holder: Any, key: Any, answer: Answer, write: WriteTurn) -> None:
    """Replace the content and images of a message."""
    new = write(Turn((answer,)))[0]
    old = {name: value for name, value in holder[key].items() if name != "images"}
    holder[key] = {**old, "content": new["content"], **({"images": new["images"]} if "images" in new else {})}


def follow_up(turn: RepairedTurn, write: WriteTurn) -> list[Any]:
    """Write one user message, preceded by a reply of the assistant if the turn has one."""
    return write(Turn((), turn.follow_ups, turn.reply))

"""Tool results in Anthropic Messages: `tool_result` blocks of user messages, with a string or a list of blocks."""

from collections.abc import Mapping
from typing import Any

from gateway.core.model.turn import Answer, Turn
from gateway.core.requests.pieces import (
    Dialect,
    Finder,
    FoundTurn,
    Native,
    RepairedTurn,
    Write,
    objects,
    parts,
    with_cache_mark,
)

_NATIVE: Native = {"text": {"text": str}, "image": {"source": dict}, "document": {"source": dict}}


def find(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """The turns with media in their results: the `tool_result` blocks of one message."""
    finder = Finder()
    for place, message in objects(request.get("messages")):
        last = None
        for index, block in objects(message.get("content")):
            if block.get("type") == "tool_use":
                finder.called(block.get("id"), block.get("name"))
            elif block.get("type") == "tool_result":
                last = index
                where = ("messages", place, "content", index, "content")
                call = finder.result(block.get("tool_use_id"))
                is_error = block.get("is_error") is True
                parts(finder, where, call, block.get("content"), _NATIVE, is_error=is_error)
        if last is not None:
            finder.end_turn(("messages", place, "content", last + 1))
    return tuple(finder.turns)


def put(holder: Any, key: Any, answer: Answer, write: Write) -> None:
    """The content of a `tool_result`, or one of its blocks, anew."""
    result: Any = write(Turn((answer,)))[0]["content"][0]
    content: list[Any] = result.get("content") or []
    if isinstance(holder, list):
        holder[key : key + 1] = with_cache_mark(holder[key], content)
        return
    holder[key] = content
    if result.get("is_error"):
        holder["is_error"] = True


def follow_up(turn: RepairedTurn, write: Write) -> list[Any]:
    """Blocks that come after the results of the same message."""
    content: list[Any] = []
    if turn.follow_ups:
        content += write(Turn((), turn.follow_ups))[-1]["content"]
    for caption, part in turn.carried:
        content += [{"type": "text", "text": caption}, part]
    return content


DIALECT = Dialect(find, put, follow_up)

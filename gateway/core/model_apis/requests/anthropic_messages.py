"""Tool results in Anthropic Messages: `tool_result` blocks of user messages, with a string or a list of blocks."""

from collections.abc import Mapping
from typing import Any

from gateway.core.model.turn import Answer, Turn
from gateway.core.model_apis.requests.found_results import (
    Dialect,
    Finder,
    FoundTurn,
    Native,
    RepairedTurn,
    Write,
    following,
    objects,
    parts,
    put_content,
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
    put_content(holder, key, result.get("content") or [], "text")
    if result.get("is_error") and not isinstance(holder, list):
        holder["is_error"] = True


def follow_up(turn: RepairedTurn, write: Write) -> list[Any]:
    """Blocks that come after the results of the same message."""
    return following(turn, write, "text")


DIALECT = Dialect(find, put, follow_up)

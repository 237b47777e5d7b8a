"""Tool results in OpenAI Responses: `input[]` items that give the output of a call, as a string or a list of parts."""

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

_NATIVE: Native = {
    "input_text": {"text": str},
    "input_image": {"image_url": str, "file_id": str},
    "input_file": {"file_data": str, "file_id": str, "file_url": str},
}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_WITHIN_A_TURN = (*_OUTPUTS, "function_call", "custom_tool_call", "reasoning")


def find(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """The turns with media in their results: outputs with at most calls between them."""
    finder = Finder()
    items = objects(request.get("input"))
    for place, item in items:
        kind = item.get("type")
        if kind not in _WITHIN_A_TURN:
            finder.end_turn(("input", place))
        elif kind in _OUTPUTS:
            call = finder.result(item.get("call_id"))
            parts(finder, ("input", place, "output"), call, item.get("output"), _NATIVE)
        else:
            finder.called(item.get("call_id"), item.get("name"))
    finder.end_turn(("input", items[-1][0] + 1 if items else 0))
    return tuple(finder.turns)


def put(holder: Any, key: Any, answer: Answer, write: Write) -> None:
    """An item's output, or one of its parts, anew."""
    put_content(holder, key, write(Turn((answer,)))[0]["output"], "input_text")


def follow_up(turn: RepairedTurn, write: Write) -> list[Any]:
    """One user message."""
    return [{"type": "message", "role": "user", "content": following(turn, write, "input_text")}]


DIALECT = Dialect(find, put, follow_up)

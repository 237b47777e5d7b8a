"""Tool results in Ollama's /api/chat: messages with `role: tool`, text in `content` and base64 in `images`."""

from collections.abc import Mapping
from typing import Any, cast

from gateway.core.model.base64_text import mend
from gateway.core.model.turn import Answer, Turn
from gateway.core.model_apis.requests.found_results import Dialect, Finder, FoundTurn, RepairedTurn, Write, objects
from gateway.core.model_apis.requests.gateway_lines import handles_in
from gateway.core.model_apis.requests.result_formats import envelope_of, has_media


def find(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """The turns with media in their results: messages of tools that stand together."""
    finder = Finder()
    messages = objects(request.get("messages"))
    for place, message in messages:
        if message.get("role") != "tool":
            finder.end_turn(("messages", place))
            continue
        call = finder.result(message.get("tool_call_id"), message.get("tool_name") or message.get("name"))
        said = envelope_of(message.get("content") or "")
        given = message.get("images")
        images = cast("list[Any]", given) if isinstance(given, list) else []
        beside = [block for data in images for block in envelope_of({"type": "image", "data": data}).blocks]
        exact = all(isinstance(data, str) and mend(data).mended == () for data in images)
        native = exact and not has_media(said) and not handles_in(said)
        whole = said.model_copy(update={"blocks": (*said.blocks, *beside)})
        finder.envelope(("messages", place), call, whole, native=native)
    finder.end_turn(("messages", messages[-1][0] + 1 if messages else 0))
    return tuple(finder.turns)


def put(holder: Any, key: Any, answer: Answer, write: Write) -> None:
    """A message's content and images anew."""
    new = write(Turn((answer,)))[0]
    old = {name: value for name, value in holder[key].items() if name != "images"}
    holder[key] = {**old, "content": new["content"], **({"images": new["images"]} if "images" in new else {})}


def follow_up(turn: RepairedTurn, write: Write) -> list[Any]:
    """One user message, and a reply of the assistant's before it where the turn has one."""
    return write(Turn((), turn.follow_ups, turn.reply))


DIALECT = Dialect(find, put, follow_up)

"""Tool results in OpenAI Chat Completions, and in every API that speaks its form (llama-server, vLLM, Groq ...).

`messages[]` with `role: tool` (or `function`), whose content is a string or a list of parts. What clients put there:
strings of JSON (the AI SDK, Cline), MCP's and Anthropic's image blocks, `image_url` parts (LangChain).
"""

from collections.abc import Mapping
from typing import Any

from gateway.core.model.turn import Answer, Turn, reply_messages
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

_MEDIA = ("image_url", "input_audio", "file", "audio_url", "video_url")
_NATIVE: Native = {"text": {"text": str}, **{kind: {kind: dict} for kind in _MEDIA}}
_ANSWERS = ("tool", "function")


def find(request: Mapping[str, Any]) -> tuple[FoundTurn, ...]:
    """The turns with media in their results: messages of tools that stand together."""
    finder = Finder()
    messages = objects(request.get("messages"))
    for place, message in messages:
        if message.get("role") not in _ANSWERS:
            finder.end_turn(("messages", place))
            _note_calls(finder, message)
            continue
        call = finder.result(message.get("tool_call_id"), message.get("name"))
        parts(finder, ("messages", place, "content"), call, message.get("content"), _NATIVE)
    finder.end_turn(("messages", messages[-1][0] + 1 if messages else 0))
    return tuple(finder.turns)


def _note_calls(finder: Finder, message: Mapping[str, Any]) -> None:
    for _, called in objects(message.get("tool_calls")):
        for _, function in objects([called.get("function")]):
            finder.called(called.get("id"), function.get("name"))


def put(holder: Any, key: Any, answer: Answer, write: Write) -> None:
    """The content of a message, or one of its parts, anew."""
    put_content(holder, key, write(Turn((answer,)))[0]["content"], "text")


def follow_up(turn: RepairedTurn, write: Write) -> list[Any]:
    """One user message, and a reply of the assistant's before it where the turn has one."""
    return [*reply_messages(turn.reply), {"role": "user", "content": following(turn, write, "text")}]


DIALECT = Dialect(find, put, follow_up)

"""Scripts for a stand-in's model: they choose the reply to a request."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.core.model.json_values import is_dict
from gateway.core.model.media_types import inspect
from gateway.testing.model_apis.read_request import Conversation, Message, Seen


@dataclass(frozen=True)
class ToolCall:
    """A call made by the model. The server adds an id if it has none."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """One reply of the model: its reasoning, its text and its tool calls, in this order."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()


Script: TypeAlias = Callable[[Conversation], Reply]
"""Takes an accepted request, parsed, and returns the reply."""

FINAL = "final_answer"
"""The tool with which an agent ends if it does not accept text as an answer (smolagents)."""
WAIT = "WaitForMcpServers"
"""The tool with which a model of Claude Code waits for MCP servers that are still connecting."""
_MOST_WAITS = 20
_MODELS = ("assistant", "model")
_CALL = re.compile(r"^call (\S+)(?: (\{.*\}))?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class LookingModel:
    """A model that calls a tool, then says exactly what it sees.

    It makes the calls that a user's lines like `call charts__bar_chart {"rows": 3}` name. Without such a line it calls
    the first tool offered, unless there is already a result. If the host has a tool to wait for servers that are still
    connecting, the model waits until the tool of such a line is there. Lines before its last message are ignored, so
    that agents that write calls and results as text are supported too.
    """

    def __call__(self, conversation: Conversation) -> Reply:
        """Return calls, or `I see 2 images: image/png 640x480 sha256 0123456789ab, ...`."""
        if calls := _wanted(conversation):
            return Reply(calls=calls)
        if FINAL in conversation.tools:
            return Reply(calls=(ToolCall(FINAL, {"answer": sight(conversation)}),))
        return Reply(text=sight(conversation))


def _wanted(conversation: Conversation) -> tuple[ToolCall, ...]:
    waits = {call.id for message in conversation.messages for call in message.calls if call.name == WAIT and call.id}
    calls = _ordered(conversation, waits)
    is_there = all(call.name in conversation.tools for call in calls)
    return calls if is_there or WAIT not in conversation.tools or len(waits) >= _MOST_WAITS else (ToolCall(WAIT),)


def _ordered(conversation: Conversation, waits: Collection[str]) -> tuple[ToolCall, ...]:
    """Return the calls to make now. The calls with the ids in `waits`, and their answers, are passed over."""

    def is_wait(message: Message) -> bool:
        refs = (*message.calls, *message.answers)
        return bool(refs) and all(ref.id in waits for ref in refs)

    messages = [message for message in conversation.messages if not is_wait(message)]
    answered = [number for number, message in enumerate(messages) if message.answers]
    spoken = [number for number, message in enumerate(messages) if message.role in _MODELS]
    orders = [
        (number, found)
        for number, message in enumerate(messages)
        if message.role == "user" and (found := _CALL.findall(message.text))
    ]
    if orders and max((-1, *answered, *spoken)) < orders[-1][0]:
        return tuple(ToolCall(name, _arguments(written)) for name, written in orders[-1][1])
    if conversation.tools and not orders and not answered:
        return (ToolCall(conversation.tools[0]),)
    return ()


def _arguments(written: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(written or "{}")
    except ValueError:
        return {}
    return value if is_dict(value) else {}


def sight(conversation: Conversation) -> str:
    """Describe what the model sees: `I see 1 image, 1 document: image/png 40x30 sha256 ..., application/pdf ...`."""
    found = [seen for media in conversation.media if (seen := media.seen)]
    if not found:
        return "I see no media."
    counted = Counter(one.kind for one in found)
    counts = ", ".join(f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in counted.items())
    return f"I see {counts}: {', '.join(_description(one) for one in found)}"


def _description(seen: Seen) -> str:
    size = inspect(seen.content).size
    pixels = f" {size.width}x{size.height}" if size else ""
    return f"{seen.media_type}{pixels} sha256 {hashlib.sha256(seen.content).hexdigest()[:12]}"


class Scripted:
    """A model that gives these replies in order, and then repeats the last one."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self._replies: Iterator[Reply] = iter(replies)
        self._last = Reply()

    def __call__(self, conversation: Conversation) -> Reply:
        """Return the next reply, whatever the request is."""
        self._last = next(self._replies, self._last)
        return self._last

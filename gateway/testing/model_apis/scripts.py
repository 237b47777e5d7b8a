"""What a stand-in's model says: a script decides, from what it was asked and shown."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.core.model.json_values import is_dict
from gateway.core.model.media_types import inspect
from gateway.testing.model_apis.read_request import Conversation, Seen


@dataclass(frozen=True)
class ToolCall:
    """A call that the model makes. The server gives it an id if it has none."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""


@dataclass(frozen=True)
class Reply:
    """One reply of the model: what it thinks, says and calls, in this order."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()


Script: TypeAlias = Callable[[Conversation], Reply]
"""From a request that was accepted, as it was read, to the reply."""

FINAL = "final_answer"
"""The tool with which an agent ends, where a text is no answer to it (smolagents)."""
_MODELS = ("assistant", "model")
_CALL = re.compile(r"^call (\S+)(?: (\{.*\}))?\s*$", re.MULTILINE)


@dataclass(frozen=True)
class LookingModel:
    """Calls a tool, then says exactly what it sees.

    A user's line `call charts__bar_chart {"rows": 3}` is a call that it makes, several lines are several calls. Without
    such a line it calls the first tool that it is offered, unless a result is there already. An order after which
    it has spoken is done, so that an agent that writes calls and results as text is understood as well.
    """

    def __call__(self, conversation: Conversation) -> Reply:
        """The calls, or `I see 2 images: image/png 640x480 sha256 0123456789ab, ...`."""
        if calls := _wanted(conversation):
            return Reply(calls=calls)
        if FINAL in conversation.tools:
            return Reply(calls=(ToolCall(FINAL, {"answer": sight(conversation)}),))
        return Reply(text=sight(conversation))


def _wanted(conversation: Conversation) -> tuple[ToolCall, ...]:
    messages = conversation.messages
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
    """What the model sees, in words: `I see 1 image, 1 document: image/png 40x30 sha256 ..., application/pdf ...`."""
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
    """Gives these replies, one after the other; the last one again when they are used up."""

    def __init__(self, replies: Iterable[Reply]) -> None:
        self._replies: Iterator[Reply] = iter(replies)
        self._last = Reply()

    def __call__(self, conversation: Conversation) -> Reply:
        """The next reply, whatever is asked."""
        self._last = next(self._replies, self._last)
        return self._last

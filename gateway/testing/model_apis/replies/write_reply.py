"""What the writers of all APIs share."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.testing.model_apis.scripts import Reply

MOMENT = 1_800_000_000
"""When every reply was made, in seconds since 1970: equal requests get equal bytes."""

_PIECE = 12


@dataclass(frozen=True)
class Asked:
    """What a reply answers: the number of the request on this server, the model it names, and its body."""

    number: int
    model: str
    request: Mapping[str, Any]


@dataclass(frozen=True)
class Writer:
    """How one API writes: a whole reply, the events of a streamed one, and why it refuses a request."""

    whole: Callable[[Reply, Asked], dict[str, Any]]
    events: Callable[[Reply, Asked], Iterator[str]] | None
    refusal: Callable[[str], Any]
    media_type: str = "text/event-stream"


def sse(data: Mapping[str, Any], event: str | None = None) -> str:
    """One server-sent event."""
    return f"{f'event: {event}' + chr(10) if event else ''}data: {compact(data)}\n\n"


def compact(value: Any) -> str:
    """JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pieces(text: str) -> Iterator[str]:
    """The text in the pieces in which it is streamed."""
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


def openai_error(message: str) -> dict[str, Any]:
    """The error form of OpenAI and of the APIs that follow it."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

"""Shared parts of the writers of replies."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.testing.model_apis.scripts import Reply

MOMENT = 1_800_000_000
"""The creation time of every reply, in seconds since 1970: constant, so that equal requests get equal bytes."""

_PIECE = 12


@dataclass(frozen=True)
class Asked:
    """The request that a reply answers: its number on this server, its model, and its body."""

    number: int
    model: str
    request: Mapping[str, Any]


@dataclass(frozen=True)
class Writer:
    """Functions that write one API's replies: a whole reply, the events of a streamed one, and an error."""

    whole: Callable[[Reply, Asked], dict[str, Any]]
    events: Callable[[Reply, Asked], Iterator[str]] | None
    refusal: Callable[[str], Any]
    media_type: str = "text/event-stream"


def sse(data: Mapping[str, Any], event: str | None = None) -> str:
    """Format one server-sent event."""
    return f"{f'event: {event}' + chr(10) if event else ''}data: {compact(data)}\n\n"


def compact(value: Any) -> str:
    """Format JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pieces(text: str) -> Iterator[str]:
    """Split a text into the pieces in which it is streamed."""
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


def openai_error(message: str) -> dict[str, Any]:
    """Return an error in the form of OpenAI and compatible APIs."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

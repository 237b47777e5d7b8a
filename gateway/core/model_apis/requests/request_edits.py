"""Edits of a request: copies along the way to what changes, and new content in the places of the old."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from gateway.core.model.json_values import as_object, is_dict, is_list
from gateway.core.model.turn import Answer, Part, Turn
from gateway.core.model_apis.requests.found_results import FoundTurn, RepairedTurn, Where

WriteTurn: TypeAlias = Callable[[Turn], list[dict[str, Any]]]
"""What writes the results of tools: `write_turn` of a model API."""


class Target(Protocol):
    """What content is written for: the module of a model API."""

    def write_turn(self, turn: Turn, /) -> list[dict[str, Any]]:
        """The messages after the assistant's: the results of all its calls, and what follows them."""
        ...

    def user_message(self, parts: Sequence[Part], /) -> dict[str, Any]:
        """A message of the user's."""
        ...

    def write_part(self, part: Part, /) -> Any:
        """One part of a user's message."""
        ...


class RequestApi(Protocol):
    """How the requests of an API hold tool results: its module, where they are repaired."""

    def find_results(self, request: Mapping[str, Any], /) -> tuple[FoundTurn, ...]:
        """The turns of a request that have something to look at in their results."""
        ...

    def put_result(self, holder: Any, key: Any, answer: Answer, write: WriteTurn, /) -> None:
        """Put an answer in place of `holder[key]`. `write` is the API that it is written for, which may be another."""
        ...

    def follow_up(self, turn: RepairedTurn, write: WriteTurn, /) -> list[Any]:
        """What follows a turn's results: the elements for the list that `turn.after` leads into."""
        ...


def value_at(request: Any, where: Where) -> Any:
    """The value that `where` leads to."""
    for key in where:
        request = request[key]
    return request


def with_copies(value: Any, wheres: Sequence[Where]) -> Any:
    """The value with copies of the lists and objects on these ways; everything else is the very same."""
    if not (is_list(value) or is_dict(value)):
        return value
    copied: Any = value.copy()
    for key in {where[0] for where in wheres if where}:
        copied[key] = with_copies(copied[key], [where[1:] for where in wheres if where and where[0] == key])
    return copied


def put_content(holder: Any, key: Any, content: Any, text: str) -> None:
    """New content in place of a result's, or of one of its parts; `text` is the type of a part of text."""
    if isinstance(holder, list):
        new = content if is_list(content) else [{"type": text, "text": content}]
        holder[key : key + 1] = with_cache_mark(holder[key], new)
    else:
        holder[key] = content


def following(turn: RepairedTurn, write: WriteTurn, text: str) -> list[Any]:
    """The parts that follow a turn's results: the media, and what goes on as it came, each with its caption."""
    content: list[Any] = []
    if turn.follow_ups:
        content += write(Turn((), turn.follow_ups))[-1]["content"]
    for caption, part in turn.carried:
        content += [{"type": text, "text": caption}, part]
    return content


def with_cache_mark(old: Any, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new parts, the last of which ends a cached prefix if the old one did (`cache_control`)."""
    mark = as_object(old).get("cache_control")
    return [*new[:-1], {**new[-1], "cache_control": mark}] if mark is not None and new else new

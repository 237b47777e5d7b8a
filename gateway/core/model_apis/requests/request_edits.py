"""Edit a request: copy the containers that lead to a change, and replace old content."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from gateway.core.model.json_values import as_object, is_dict, is_list
from gateway.core.model.turn import Answer, Part, Turn
from gateway.core.model_apis.requests.found_results import FoundTurn, RepairedTurn, Where

WriteTurn: TypeAlias = Callable[[Turn], list[dict[str, Any]]]
"""A function that writes the results of tools: `write_turn` of a model API."""


class Target(Protocol):
    """The API that content is written for: a model API's module."""

    def write_turn(self, turn: Turn, /) -> list[dict[str, Any]]:
        """Write the messages after the assistant's: the results of all its calls, and what follows them."""
        ...

    def user_message(self, parts: Sequence[Part], /) -> dict[str, Any]:
        """Write a user message."""
        ...

    def write_part(self, part: Part, /) -> Any:
        """Write one part of a user message."""
        ...


class RequestApi(Protocol):
    """The interface of an API's module for finding and replacing tool results in requests."""

    def find_results(self, request: Mapping[str, Any], /) -> tuple[FoundTurn, ...]:
        """Find the turns of a request that have something to examine in their results."""
        ...

    def put_result(self, holder: Any, key: Any, answer: Answer, write: WriteTurn, /) -> None:
        """Replace `holder[key]` by an answer. `write` belongs to the API that the answer is for, maybe another one."""
        ...

    def follow_up(self, turn: RepairedTurn, write: WriteTurn, /) -> list[Any]:
        """Write what follows a turn's results: elements for the list that `turn.after` leads into."""
        ...


def value_at(request: Any, where: Where) -> Any:
    """Return the value that `where` leads to."""
    for key in where:
        request = request[key]
    return request


def with_copies(value: Any, wheres: Sequence[Where]) -> Any:
    """Return the value with copies of the lists and objects along these paths; everything else is the same object.

    Linear in the number of paths.
    """
    if not (is_list(value) or is_dict(value)):
        return value
    below: dict[Any, list[Where]] = {}
    for where in wheres:
        if where:
            below.setdefault(where[0], []).append(where[1:])
    copied: Any = value.copy()
    for key, rest in below.items():
        copied[key] = with_copies(copied[key], rest)
    return copied


def put_content(holder: Any, key: Any, content: Any, text: str) -> None:
    """Replace the content of a result, or of one of its parts; `text` is the type of a text part."""
    if isinstance(holder, list):
        new = content if is_list(content) else [{"type": text, "text": content}]
        holder[key : key + 1] = with_cache_mark(holder[key], new)
    else:
        holder[key] = content


def following(turn: RepairedTurn, write: WriteTurn, text: str) -> list[Any]:
    """Write the parts that follow a turn's results: media, and parts passed on unchanged, each with its caption."""
    content: list[Any] = []
    if turn.follow_ups:
        content += write(Turn((), turn.follow_ups))[-1]["content"]
    for caption, part in turn.carried:
        content += [{"type": text, "text": caption}, part]
    return content


def with_cache_mark(old: Any, new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the new parts, the last of which ends a cached prefix if the old one did (`cache_control`)."""
    mark = as_object(old).get("cache_control")
    return [*new[:-1], {**new[-1], "cache_control": mark}] if mark is not None and new else new

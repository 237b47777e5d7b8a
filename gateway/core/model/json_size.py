"""How large a JSON value is, by each measure that something is limited by. Standard library only.

    size_of       characters of texts and keys, and values, without writing them: to bound work, in bounded time
    memory_of     bytes that it takes in memory, about, counted in the same walk
    wire_chars    characters as it is sent: what hosts limit results by (`limits.result_chars`)
    wire_bytes    bytes as it is sent: what hosts limit schemas by (`tools.schema_max_bytes`)

The first two walk over the value; the last two are exact, so they write it.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from gateway.core.model.json_shape import ARRAYS, children_of, containers_in

MANY_VALUES = 20_000
"""Values in one JSON value above which walking over it takes milliseconds: not on the event loop."""

_VALUE = 64
"""Bytes of a number or a container, and of its place in the container that holds it."""
_TEXT = 50
_WIDE = 2
"""Bytes of a character in a text that is not all ASCII; it may be 1 or 4."""

_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class Size(NamedTuple):
    """How large a JSON value is: the characters of all texts and keys, and the number of values, containers included.

    `is_whole` is false when counting was ended at a limit.
    """

    characters: int
    values: int
    is_whole: bool = True

    @property
    def total(self) -> int:
        """The size as one number: the least that the value has as JSON, with one character more for each value."""
        return self.characters + self.values


def size_of(
    value: Any, *, most: int | None = None, most_values: int | None = None, weigh: Callable[[str], int] = len
) -> Size:
    """The size of a JSON value; counting ends soon after more than `most` in total, or `most_values` values.

    `weigh` says what a text counts for, in place of its length. In linear time, and never recursive; level by level,
    since that takes a quarter of the time of a walk in one loop.
    """
    characters, values = 0, 1
    here: list[Any] = [value]
    while True:
        characters += sum([weigh(item) for item in here if isinstance(item, str)])
        containers = containers_in(here)
        if not containers:
            return Size(characters, values)
        values += sum(map(len, containers))
        if (most_values is not None and values > most_values) or (most is not None and characters + values > most):
            return Size(characters, values, is_whole=False)
        characters += sum([weigh(key) for item in containers if not isinstance(item, ARRAYS) for key in item])
        here = children_of(containers)


def has_many_values(value: Any) -> bool:
    """Whether a JSON value has so many values that walking over it should not be done on the event loop."""
    return size_of(value, most_values=MANY_VALUES).values > MANY_VALUES


def memory_of(value: Any, most: int | None = None) -> int:
    """About so many bytes of memory (CPython's). Counting ends soon after `most`, and is then a little more than that.

    Keys are counted each time that they stand in the value.
    """
    size = size_of(value, most=most, most_values=None if most is None else most // _VALUE, weigh=_weigh)
    found = size.characters + _VALUE * size.values
    return found if size.is_whole or most is None else min(found, most + 1)


def _weigh(text: str) -> int:
    return _TEXT + len(text) * (1 if text.isascii() else _WIDE)


def compact_json(value: Any) -> str:
    """A JSON value as it is sent: without blanks, and characters beyond ASCII as they are.

    What JSON does not have is written as its `str`.
    """
    return _WRITER.encode(value)


def wire_chars(value: Any) -> int:
    """The characters of a JSON value as it is sent."""
    return len(compact_json(value))


def wire_bytes(value: Any) -> int:
    """The bytes of a JSON value as it is sent."""
    return len(compact_json(value).encode("utf-8", "surrogatepass"))

"""The size of a JSON value, in each unit that limits use. Standard library only.

    size_of       characters of texts and keys, and number of values, in bounded time: to bound work
    memory_of     approximate bytes in memory, counted in the same way
    wire_chars    characters as sent, for the limits of hosts on results (`limits.result_chars`)
    wire_bytes    bytes as sent, for the limits of hosts on schemas (`tools.schema_max_bytes`)

The first two walk over the value without serializing it; the last two are exact and serialize it.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from gateway.core.model.json_shape import SCALARS, contents_of, is_container

MANY_VALUES = 20_000
"""Number of values above which walking over a JSON value takes milliseconds, too long for the event loop."""

_NO_LIMIT = 2**62
"""More than any size, and compared faster than infinity, which is a float."""
_VALUE = 64
"""Bytes of a number or a container, including its slot in the container around it."""
_TEXT = 50
_WIDE = 2
"""Bytes assumed for each character of a text that is not all ASCII; really 1, 2 or 4."""

_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class Size(NamedTuple):
    """The size of a JSON value: the characters of all texts and keys, and the number of values and containers.

    `is_whole` is false if counting stopped at a limit.
    """

    characters: int
    values: int
    is_whole: bool = True

    @property
    def total(self) -> int:
        """The size as one number: a lower bound on the value's length as JSON, with one more character per value."""
        return self.characters + self.values


def size_of(
    value: Any, *, most: int | None = None, most_values: int | None = None, weigh: Callable[[str], int] = len
) -> Size:
    """Return the size of a JSON value; counting stops soon after a total of `most`, or `most_values` values.

    `weigh` returns what a text counts for instead of its length. Linear time, not recursive. The types that parsing
    makes are told apart first: every call passes through here.
    """
    limit = _NO_LIMIT if most is None else most
    limit_values = _NO_LIMIT if most_values is None else most_values
    characters, values = 0, 1
    level: list[Any] = [value]
    while level:
        below: list[Any] = []
        for item in level:
            kind = type(item)  # pyright: ignore[reportUnknownVariableType]
            if kind is str:
                characters += weigh(item)
                continue
            if kind is dict:
                inside: Any = item.values()
            elif kind is list:
                inside = item
            elif kind in SCALARS:
                continue
            elif is_container(item):
                inside = contents_of(item)
            else:
                characters += weigh(item) if isinstance(item, str) else 0
                continue
            values += len(item)
            if values > limit_values or characters + values > limit:
                return Size(characters, values, False)
            below += inside
            if inside is not item:
                characters += sum(map(weigh, item))
        level = below
    return Size(characters, values)


def has_many_values(value: Any) -> bool:
    """Whether a JSON value has too many values to walk over it on the event loop."""
    return size_of(value, most_values=MANY_VALUES).values > MANY_VALUES


def memory_of(value: Any, most: int | None = None) -> int:
    """Return the approximate bytes in memory (of CPython). Counting stops soon after `most`, at a little more.

    Keys are counted each time they occur in the value.
    """
    size = size_of(value, most=most, most_values=None if most is None else most // _VALUE, weigh=_weigh)
    found = size.characters + _VALUE * size.values
    return found if size.is_whole or most is None else min(found, most + 1)


def _weigh(text: str) -> int:
    return _TEXT + len(text) * (1 if text.isascii() else _WIDE)


def compact_json(value: Any) -> str:
    """Return a JSON value as it is sent: without whitespace, and with non-ASCII characters unescaped.

    Objects that JSON does not have are written as their `str`.
    """
    return _WRITER.encode(value)


def wire_chars(value: Any) -> int:
    """Return the number of characters of a JSON value as it is sent."""
    return len(compact_json(value))


def wire_bytes(value: Any) -> int:
    """Return the number of bytes of a JSON value as it is sent."""
    return len(compact_json(value).encode("utf-8", "surrogatepass"))

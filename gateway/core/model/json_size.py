"""The size of a JSON value, in each unit that limits use. Standard library only.

    size_of       characters of keys, texts and numbers, and number of values, in bounded time: to bound work
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

_RUNS, _RUN = 8, 64
"""Of many numbers, this many runs of this length are written; the rest count as much as these on average."""

_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


class Size(NamedTuple):
    """The size of a JSON value: the characters of keys, texts, numbers and words, and the number of values.

    Characters are those of JSON without quotes, escapes and punctuation: exact for keys and texts, and about right for
    numbers. Containers are values, too. `is_whole` is false if counting stopped at a limit.
    """

    characters: int
    values: int
    is_whole: bool = True

    @property
    def total(self) -> int:
        """The size as one number: about the value's length as JSON, with one character of punctuation per value."""
        return self.characters + self.values

    @property
    def memory(self) -> int:
        """About the bytes that the value takes in memory: small values cost a multiple of their characters."""
        return self.characters + _VALUE * self.values


def size_of(
    value: Any, *, most: int | None = None, most_values: int | None = None, weigh: Callable[[str], int] = len
) -> Size:
    """Return the size of a JSON value; counting stops soon after a total of `most`, or `most_values` values.

    `weigh` returns what a text counts for instead of its length. Linear time, not recursive. The types that parsing
    makes are told apart first: every call passes through here. Few numbers are written, since that takes several times
    as long as the rest.
    """
    limit = _NO_LIMIT if most is None else most
    limit_values = _NO_LIMIT if most_values is None else most_values
    characters, values = 0, 1
    scalars: list[Any] = []
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
                scalars.append(item)
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
    return Size(characters + _length_of(scalars), values)


def _length_of(scalars: list[Any]) -> int:
    """Return about the number of characters of numbers and words. Writing each takes longer than all the rest."""
    step = max(_RUN, len(scalars) // _RUNS)
    sample = [one for start in range(0, len(scalars), step) for one in scalars[start : start + _RUN]]
    return sum(map(_written, sample)) * len(scalars) // max(1, len(sample))


def _written(scalar: float | None) -> int:
    # A very long number cannot be written at once: sys.get_int_max_str_digits.
    return scalar.bit_length() * 3 // 10 + 1 if type(scalar) is int else len(repr(scalar))


def memory_of(value: Any, most: int | None = None) -> int:
    """Return the approximate bytes in memory (of CPython). Counting stops soon after `most`, at a little more.

    Keys are counted each time they occur in the value.
    """
    size = size_of(value, most=most, most_values=None if most is None else most // _VALUE, weigh=_weigh)
    return size.memory if size.is_whole or most is None else min(size.memory, most + 1)


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

"""About how much memory a JSON value takes."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

_OBJECT = 64
_MEMBER = 100
_ITEM = 8
_TEXT = 50
_NUMBER = 32
_WIDE = 2
"""Bytes of a character in a text that is not all ASCII; it may be 1 or 4."""


def memory_of(value: Any, most: int | None = None) -> int:
    """About so many bytes of memory (CPython's, keys counted once each). Counting ends as soon as it is over `most`."""
    total, waiting = 0, [value]
    while waiting and (most is None or total <= most):
        item = waiting.pop()
        if isinstance(item, str):
            total += _TEXT + len(item) * (1 if item.isascii() else _WIDE)
        elif isinstance(item, Mapping):
            members = cast("Mapping[str, Any]", item)
            total += _OBJECT + _MEMBER * len(members) + sum(map(len, members))
            waiting.extend(members.values())
        elif isinstance(item, list | tuple):
            items = cast("Sequence[Any]", item)
            total += _OBJECT + _ITEM * len(items)
            waiting.extend(items)
        else:
            total += _NUMBER
    return total

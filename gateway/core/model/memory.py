"""Estimating the memory that a JSON value takes."""

from typing import Any

from gateway.core.model.json_shape import size_of

_VALUE = 64
"""Bytes for a number or a container, and for its place in the container that holds it."""
_TEXT = 50
_WIDE = 2
"""Bytes per character in a text that is not all ASCII; it may be 1 to 4."""


def memory_of(value: Any, most: int | None = None) -> int:
    """Estimate the bytes of memory that a JSON value takes in CPython, stopping soon after `most`.

    Keys are counted each time they occur in the value.
    """
    size = size_of(value, most=most, most_values=None if most is None else most // _VALUE, weigh=_weigh)
    found = size.characters + _VALUE * size.values
    return found if size.is_whole or most is None else min(found, most + 1)


def _weigh(text: str) -> int:
    return _TEXT + len(text) * (1 if text.isascii() else _WIDE)

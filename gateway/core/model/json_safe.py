"""JSON that every parser can read and every serializer can write. Standard library only.

A result comes from programs that we do not control. Some things in it would stop it on the way: halves of surrogate
pairs, which no UTF-8 encoder accepts; numbers that JSON does not have (NaN, infinities), or that no parser accepts
(thousands of digits); and deep nesting (`gateway.core.model.json_shape`). One of them in the description of one tool
must not cost the host its whole list.
"""

import json
import math
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, cast

from gateway.core.model.json_shape import DEEPEST, NESTED_TOO_DEEPLY, cut_text, may_be_deep

_LONGEST_INTEGER = 4_300
"""Digits. Python's json refuses to parse more, and other parsers turn such a number into infinity."""

_MOST_BITS = int(_LONGEST_INTEGER * math.log2(10))
_LEVELS_READ = 250
"""Deeper than anything that `cut_text` leaves."""


def to_json_safe(value: Any, deepest: int = DEEPEST) -> Any:
    """Return the same JSON value, made of dicts, lists and scalars only, with everything invalid replaced.

    Half a surrogate pair becomes U+FFFD; a number that JSON does not have, or that has too many digits, becomes null;
    what nests deeper than `deepest` levels becomes a text that says so. A value without faults is returned as the same
    object.

    Raises:
        TypeError: the value is not JSON (a mistake of our own).
    """
    return value if is_json_safe(value, deepest) else _safe(value, deepest)


def is_json_safe(value: Any, deepest: int = DEEPEST, *, most_values: int | None = None) -> bool | None:
    """Whether a JSON value, as parsed, has no faults: `to_json_safe` would return it unchanged.

    None if there are more than `most_values` keys and values: looking at all of them takes long.
    """
    left = math.inf if most_values is None else most_values
    level: list[Any] | None = [value]
    try:
        for nests in range(deepest, -1, -1):
            level = _inside(level, left, nests=nests > 0)
            if not level:
                break
            left -= len(level)
    except _TooMany:
        return None
    return level is not None


class _TooMany(Exception):
    """There are more values than may be looked at."""


def _inside(level: list[Any], most: float, *, nests: bool) -> list[Any] | None:
    """Return the keys and values in the containers among these values; None if one of them has a fault.

    Raises _TooMany before more than about `most` values are gathered.
    """
    inside: list[Any] = []
    for item in level:
        kind = type(item)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            if not (item.isascii() or _has_no_halves(item)):
                return None
        elif nests and (kind is dict or kind is list):
            if len(inside) + len(item) > most:
                raise _TooMany
            inside += item
            if kind is dict:
                inside += item.values()
        elif kind not in _FLAGS and not _is_written(item):
            return None
    return inside


def _is_written(item: Any) -> bool:
    """Whether a value is a number that every parser reads."""
    kind = type(item)  # pyright: ignore[reportUnknownVariableType]
    return (kind is int and item.bit_length() <= _MOST_BITS) or (kind is float and math.isfinite(item))


def _safe(value: Any, deepest: int) -> Any:
    kind = type(cast("object", value))
    if kind is str:
        return value if value.isascii() else _safe_text(value)
    if kind is bool or value is None:
        return value
    if kind is int:
        return value if value.bit_length() <= _MOST_BITS else None
    if kind is float:
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return _safe_object(cast("Mapping[str, Any]", value), deepest) if deepest else NESTED_TOO_DEEPLY
    if isinstance(value, (list, tuple)):
        return _safe_array(cast("Sequence[Any]", value), deepest) if deepest else NESTED_TOO_DEEPLY
    if isinstance(value, str):
        return _safe_text(str(value))
    if isinstance(value, (int, float)):
        return _safe(float(value) if isinstance(value, float) else int(value), deepest)
    raise TypeError(f"{kind.__name__} is not a JSON value")


def read_leniently(data: bytes | str) -> Any:
    """Parse JSON text that a strict parser refused, with everything invalid replaced as in `to_json_safe`.

    Bytes that are not UTF-8 become U+FFFD. The value may still nest too deeply, but not more deeply than can be
    written.

    Raises:
        ValueError: the text is not JSON.
    """
    text = data if isinstance(data, str) else data.decode("utf-8", "replace")
    if may_be_deep(text):
        text = cut_text(text)
    try:
        return to_json_safe(json.loads(text, parse_int=_integer), _LEVELS_READ)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_finite(number: Any) -> bool:
    """Whether a value is a number that a float can represent."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return math.isfinite(number) if isinstance(number, float) else number.bit_length() < 1_024


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else math.inf


def _safe_text(text: str) -> str:
    # `isascii` reads a flag of the string, so base64 of any length costs nothing here.
    if text.isascii() or _has_no_halves(text):
        return text
    # Complete pairs written as two halves are one character after all.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _has_no_halves(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_FLAGS = frozenset({bool, NoneType})


def _safe_object(value: Mapping[str, Any], left: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    same = isinstance(value, dict)
    for key, entry in value.items():
        safe_key = _safe_text(key)
        safe = entry if type(entry) in _FLAGS else _safe(entry, left - 1)
        same = same and safe is entry and safe_key is key
        made[safe_key] = safe
    return cast("dict[str, Any]", value) if same else made


def _safe_array(value: Sequence[Any], left: int) -> list[Any]:
    made: list[Any] = []
    same = isinstance(value, list)
    for entry in value:
        safe = entry if type(entry) in _FLAGS else _safe(entry, left - 1)
        same = same and safe is entry
        made.append(safe)
    return cast("list[Any]", value) if same else made

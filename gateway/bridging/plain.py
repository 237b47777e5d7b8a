"""JSON that every writer can write.

A result comes from programs that we do not control. Two things in it would stop it on the way out: halves of surrogate
pairs, which no UTF-8 encoder takes, and numbers that are no JSON (NaN, infinities). One of them in the description of
one tool must not cost the host its whole list.
"""

import math
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any, cast


def plain(value: Any) -> Any:
    """The same JSON value, made of dict, list and scalars only; a half surrogate pair becomes U+FFFD, NaN becomes null.

    A value that is plain already comes back as it is: the same object.
    """
    if isinstance(value, str):
        return _plain_text(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return _plain_object(cast("Mapping[str, Any]", value))
    if isinstance(value, (list, tuple)):
        return _plain_array(cast("Sequence[Any]", value))
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _plain_text(text: str) -> str:
    if text.isascii():  # a flag of the string: base64 of any length costs nothing here
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # Whole pairs written as two halves are one character after all.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain_object(value: Mapping[str, Any]) -> dict[str, Any]:
    made = {_plain_text(key): plain(entry) for key, entry in value.items()}
    same = isinstance(value, dict) and made.keys() == value.keys() and all(map(is_, made.values(), value.values()))
    return cast("dict[str, Any]", value) if same else made


def _plain_array(value: Sequence[Any]) -> list[Any]:
    made = [plain(entry) for entry in value]
    same = isinstance(value, list) and all(map(is_, made, value))
    return cast("list[Any]", value) if same else made

"""JSON as text, before it is parsed. Standard library only.

Parsing takes a thousand times as much memory and time for `[],` as for the same length of text, and holds the
interpreter all the while. So the number of values is bounded, too, and not only the number of bytes.
"""

import re
from typing import AnyStr, cast

MOST_VALUES = 5_000_000
"""Maximum values in one message or document: parsing as many takes half a second, and some 300 MB."""

_PIECE = 10_000
"""Strings that are looked at together."""

_STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\Z)'
_STRINGS = re.compile(_STRING, re.DOTALL)
_STRINGS_OF_BYTES = re.compile(_STRING.encode(), re.DOTALL)
_PIECES = re.compile(rf'(?:[^"]*+{_STRING}){{1,{_PIECE}}}+', re.DOTALL)
_PIECES_OF_BYTES = re.compile(_PIECES.pattern.encode(), re.DOTALL)


def has_more_values(text: bytes | str, most: int = MOST_VALUES) -> bool:
    """Whether JSON text has more than `most` values in arrays and objects. Very fast if it cannot have as many.

    Linear. The text need not be valid; brackets without anything in them count, too.
    """
    if isinstance(text, str):
        return _has_more(text, most, ",[{", _PIECES, _STRINGS)
    return _has_more(text, most, b",[{", _PIECES_OF_BYTES, _STRINGS_OF_BYTES)


def _has_more(
    text: AnyStr, most: int, marks: AnyStr, pieces: "re.Pattern[AnyStr]", strings: "re.Pattern[AnyStr]"
) -> bool:
    # Each value is preceded by a comma or an opening bracket. Usually there are few, those within strings included.
    if _count(text, marks) <= most:
        return False
    left, at = most, 0
    while left >= 0 and (piece := pieces.match(text, at)) is not None:
        left -= _count(strings.sub(cast("AnyStr", text[:0]), piece[0]), marks)
        at = piece.end()
    return left < _count(text[at:], marks)


def _count(text: AnyStr, marks: AnyStr) -> int:
    return sum(text.count(marks[at : at + 1]) for at in range(len(marks)))

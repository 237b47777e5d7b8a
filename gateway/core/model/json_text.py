"""JSON as text, before it is parsed. Standard library only.

Parsing takes a thousand times as much memory and time for `[],` as for the same length of text, and holds the
interpreter all the while. So the number of values is bounded, too, and not only the number of bytes.
"""

import re

MOST_VALUES = 5_000_000
"""Maximum values in one message or document: parsing as many takes half a second, and some 300 MB."""

_PIECE = 10_000
"""Strings that are looked at together."""

_STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\Z)'
_STRINGS = re.compile(_STRING.encode(), re.DOTALL)
_PIECES = re.compile(rf'(?:[^"]*+{_STRING}){{1,{_PIECE}}}+'.encode(), re.DOTALL)


def has_more_values(text: bytes | str, most: int = MOST_VALUES) -> bool:
    """Whether JSON text has more than `most` values in arrays and objects. Very fast if it cannot have as many.

    Linear. The text need not be valid; brackets without anything in them count, too.
    """
    # Each value is preceded by a comma or an opening bracket. Usually there are few, those within strings included.
    marks = text.count(",") + text.count("[") + text.count("{") if isinstance(text, str) else _marks(text)
    if marks <= most:
        return False
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    left, at = most, 0
    while left >= 0 and (piece := _PIECES.match(data, at)) is not None:
        left -= _marks(_STRINGS.sub(b"", piece[0]))
        at = piece.end()
    return left < _marks(data[at:])


def _marks(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")

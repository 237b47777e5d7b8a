"""Seconds and bytes as people write them: `30`, `"30s"`, `"1h30m"`; `4_000_000`, `"4GB"`, `"512MiB"`."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

_SECONDS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_BYTES = {"b": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for ending, base in (("b", 1_000), ("ib", 1_024))
}
_PART = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([a-z]+)\s*")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"[+-]?[\d._]+(?:e[+-]?\d+)?")


def seconds_of(value: Any) -> Any:
    """Convert a text such as `"1h30m"` to seconds; anything else, or a plain number in a text, is returned as it is.

    Raises:
        ValueError: the text is not a duration.
    """
    text = value.strip().lower() if isinstance(value, str) else ""
    if not isinstance(value, str) or _NUMBER.fullmatch(text):
        return value
    parts = _PART.findall(text) if _WHOLE.fullmatch(text) else []
    if not parts or any(unit not in _SECONDS for _, unit in parts):
        raise ValueError('must be seconds: a number, or text such as "30s", "5m" or "1h30m"')
    return round(sum(float(number) * _SECONDS[unit] for number, unit in parts), 6)


def parse_bytes(value: Any) -> Any:
    """Convert a text such as `"512MiB"` to bytes; any other value, or a text with a plain number, is returned as it is.

    Raises:
        ValueError: the text is not a size.
    """
    text = value.strip().lower() if isinstance(value, str) else ""
    if not isinstance(value, str) or _NUMBER.fullmatch(text):
        return value
    part = _PART.fullmatch(text)
    if part is None or part[2] not in _BYTES:
        raise ValueError('must be bytes: a number, or text such as "500kB", "64MiB" or "4GB"')
    size = float(part[1]) * _BYTES[part[2]] if "." in part[1] else int(part[1]) * _BYTES[part[2]]
    return int(size)


def size_text(size: int) -> str:
    """Format a number of bytes in the largest binary unit that divides it, such as `"64MiB"`, or else in bytes."""
    for unit, factor in (("GiB", 1_024**3), ("MiB", 1_024**2)):
        if size and size % factor == 0:
            return f'"{size // factor}{unit}"'
    return f"{size:_}" if size >= 10_000 else str(size)


Duration = Annotated[float, BeforeValidator(seconds_of)]
"""Seconds."""
Size = Annotated[int, BeforeValidator(parse_bytes)]
"""Bytes."""

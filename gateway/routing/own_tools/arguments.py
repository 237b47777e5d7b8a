"""Parse arguments as models write them, with numbers in quotes or handles with their scheme.

An invalid argument raises an error that says what to write instead.
"""

from collections.abc import Mapping
from typing import Any

from gateway.content.store import handle_from
from gateway.core.fact_words import plain
from gateway.core.model.effects import Crop
from gateway.core.model.json_values import as_object, is_object
from gateway.errors import InvalidRequest


def refuse_unknown(arguments: Mapping[str, Any], tool: Mapping[str, Any]) -> None:
    """Refuse arguments that a tool does not have, unless they are null: the model meant something else by them."""
    known = as_object(tool["inputSchema"].get("properties"))
    unknown = next((name for name, value in arguments.items() if name not in known and value is not None), None)
    if unknown is not None:
        shown = plain(unknown, 60)
        raise InvalidRequest(f"{tool['name']} has no argument {shown!r}", remedy=f"it takes {', '.join(known)}")


def text_in(arguments: Mapping[str, Any], name: str) -> str | None:
    """Return the argument as a stripped string, or None if it is absent, null or empty."""
    value = arguments.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a text", remedy=f"give {name} in quotes, as it was named")
    return value.strip() or None


def handle_in(arguments: Mapping[str, Any]) -> str | None:
    """Return the handle in the `handle` argument, or None if it is absent, null or empty."""
    handle = text_in(arguments, "handle")
    return handle_from(handle) if handle else None


def number_in(arguments: Mapping[str, Any], name: str, *, least: int) -> int | None:
    """Return the argument as an integer that is at least `least`, or None if it is absent or null."""
    value = arguments.get(name)
    if value is None:
        return None
    number = _whole(value)
    if number is None or number < least:
        shown = plain(str(value), 40)
        raise InvalidRequest(f"{name} is {shown}", remedy=f"give a whole number that is at least {least}")
    return number


def crop_in(arguments: Mapping[str, Any]) -> Crop | None:
    """Return the `crop` argument, or None if it is absent or null."""
    value = arguments.get("crop")
    if value is None:
        return None
    if not is_object(value):
        raise InvalidRequest("crop must be an object", remedy=_CROP)
    left, top = number_in(value, "left", least=0), number_in(value, "top", least=0)
    width, height = number_in(value, "width", least=1), number_in(value, "height", least=1)
    if left is None or top is None or width is None or height is None:
        raise InvalidRequest("crop is incomplete", remedy=_CROP)
    return Crop(left, top, width, height)


_CROP = 'give all four, in pixels of the original: {"left": 0, "top": 0, "width": 400, "height": 300}'
_MOST_DIGITS = 12


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and len(value) <= _MOST_DIGITS and value.strip().isdecimal():
        return int(value)
    return None

"""Values as they leave a script: as JSON for a tool's arguments, as text for the model, and the media in them.

Runs in the process of the script, never in the gateway's.
"""

from datetime import date, time, timedelta
from typing import Any

from gateway.core.fact_words import plain
from gateway.core.model.json_safe import is_json_safe, to_json_safe
from gateway.core.model.json_shape import DEEPEST
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import is_dict, is_list
from gateway.sandbox.faults import ScriptFault
from gateway.sandbox.media import Media

_WRITTEN = (bytes, date, time, timedelta)
"""What is shown in Python's words. Those of other objects may be of any length: what they hold is in them."""
_MOST_VALUES = 100_000
_MOST_CHARACTERS = 64 * 1024 * 1024


def media_in(value: Any) -> list[Media]:
    """Return the media in a value, in order.

    Raises:
        ScriptFault: the value is too large, written out. A list that holds another ten times over, and so on, takes no
            memory in a script, and more than there is outside of it.
    """
    found: list[Media] = []
    waiting, values, characters = [value], 0, 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, Media):
            found.append(each)
        elif isinstance(each, str | bytes):
            characters += len(each)
        elif isinstance(each, int):
            characters += each.bit_length() // 8
        elif inside := _inside(each):
            values += len(inside)
            characters += sum(len(key) for key in each if isinstance(key, str))
            waiting.extend(reversed(inside))
        if values > _MOST_VALUES or characters > _MOST_CHARACTERS:
            raise ScriptFault(
                f"a value may hold at most {_MOST_VALUES:,} others and {_MOST_CHARACTERS:,} characters, each counted "
                "as often as it is in it"
            )
    return found


def _inside(value: Any) -> list[Any]:
    if is_dict(value):
        return list(value.values())
    if is_list(value) or isinstance(value, tuple | set | frozenset):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - a script's own
    return []


def to_json(value: Any, deepest: int = DEEPEST) -> Any:
    """Return a script's value as JSON for a tool's arguments: media become their handles, tuples lists.

    Raises:
        ScriptFault: it has something that JSON has not, is too large, or nests too deeply.
    """
    media_in(value)  # raises if it is too large
    return _as_json(value, deepest)


def _as_json(value: Any, left: int) -> Any:
    if isinstance(value, bool | int | float) and not is_json_safe(value):
        raise ScriptFault(f"{_number(value)} cannot be an argument: JSON has no such number")
    if value is None or isinstance(value, bool | int | float | str):
        return to_json_safe(value)
    if isinstance(value, Media):
        return value.handle
    if left == 0:
        raise ScriptFault(f"arguments may not nest deeper than {DEEPEST} levels")
    if is_dict(value):
        return {_key(key): _as_json(each, left - 1) for key, each in value.items()}
    if is_list(value) or isinstance(value, tuple):
        return [_as_json(each, left - 1) for each in value]  # pyright: ignore[reportUnknownVariableType] - as above
    if isinstance(value, bytes | bytearray):
        raise ScriptFault("bytes cannot be an argument: give the media itself, or a text")
    name = getattr(value, "name", None)
    raise ScriptFault(
        f"{plain(str(name or type(value).__name__), 100)} cannot be an argument: give data, text or media"
    )


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise ScriptFault(f"the keys of an argument must be texts, not {type(key).__name__}")
    return to_json_safe(key)


def to_text(value: Any) -> str:
    """Return a script's value as text for the model: a text as it is, data as JSON, media as a line that names it.

    Raises:
        ScriptFault: it is too large.
    """
    media_in(value)  # raises if it is too large
    if isinstance(value, str):
        return to_json_safe(value)
    if isinstance(value, Media):
        return _named(value)
    try:
        return compact_json(_readable(value))
    except (ValueError, RecursionError):
        return plain(type(value).__name__, 100)


def _readable(value: Any, left: int = DEEPEST) -> Any:
    if left == 0:
        return "..."
    if isinstance(value, Media):
        return _named(value)
    if is_dict(value):
        return {str(_readable(key, 1)): _readable(each, left - 1) for key, each in value.items()}
    if is_list(value) or isinstance(value, tuple | set | frozenset):
        return [_readable(each, left - 1) for each in value]  # pyright: ignore[reportUnknownVariableType] - as above
    if isinstance(value, bool | int | float) and not is_json_safe(value):
        return _number(value)
    if value is None or isinstance(value, bool | int | float | str):
        return to_json_safe(value)
    if isinstance(value, _WRITTEN):
        return plain(str(value), 200)
    return plain(str(getattr(value, "name", None) or type(value).__name__), 100)


def _number(value: float) -> str:
    """Return words for a number that JSON does not have."""
    return "an integer of thousands of digits" if isinstance(value, int) else str(value)


def _named(media: Media) -> str:
    pixels = f", {media.width}x{media.height}" if media.width and media.height else ""
    return f'[{media.type}: {plain(media.mime_type, 80)}{pixels}, {media.size:,} bytes; handle "{media.handle}"]'

"""Values between scripts and tools: results as data, text and media; arguments as JSON."""

import json
from collections.abc import Mapping
from datetime import date, time, timedelta
from typing import Any

from anyio import to_thread

from gateway.core.model.blocks import AudioBlock, Block, Found, ImageBlock, LinkBlock, ResourceBlock, TextBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_safe import to_json_safe
from gateway.core.model.json_shape import DEEPEST
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.results.lift_result import lift
from gateway.core.wording import plain
from gateway.routing.code_mode.media import Media, MediaShelf

_LONGEST_ERROR = 2_000
_WRITTEN = (bytes, date, time, timedelta)
"""What is shown in Python's words. Those of other objects may be of any length: what they hold is in them."""
_MOST_VALUES = 100_000
_MOST_CHARACTERS = 64 * 1024 * 1024


class ScriptFault(Exception):
    """Something that a script did wrong, or that failed for it: it can catch this as a RuntimeError."""


async def value_of(result: Mapping[str, Any], shelf: MediaShelf, origin: str | None) -> Any:
    """Return a tool's result as its script gets it.

    That is the structured content if there is any, else the text; an image, sound or file is `Media`. Several parts are
    a list in the result's order, with the structured content first.

    Raises:
        ScriptFault: the tool failed; its own words.
        ContentError: media could not be stored.
    """
    envelope = await to_thread.run_sync(lift, result)
    if envelope.is_error:
        raise ScriptFault(plain(_text_of(envelope) or "it failed without saying why", _LONGEST_ERROR))
    parts = [part for block in envelope.blocks if (part := await _part(block, shelf, origin)) is not None]
    if envelope.has_structured_content:
        found = [part for part in parts if isinstance(part, Media)]
        return [envelope.structured_content, *found] if found else envelope.structured_content
    if all(isinstance(part, str) for part in parts):
        return "\n".join(parts) if parts else None
    return parts[0] if len(parts) == 1 else parts


async def _part(block: Block, shelf: MediaShelf, origin: str | None) -> Any:
    match block:
        case TextBlock():
            return block.text
        case ImageBlock() | AudioBlock():
            return await _kept(block.found, None, shelf, origin)
        case ResourceBlock():
            if block.resource.text is not None:
                return block.resource.text
            return await _kept(block.found, block.resource.uri.rsplit("/", 1)[-1] or None, shelf, origin)
        case LinkBlock():
            return block.wire()
        case _:
            return None


async def _kept(found: Found | None, name: str | None, shelf: MediaShelf, origin: str | None) -> Media | None:
    return None if found is None else await shelf.keep(found, name, origin)


def _text_of(envelope: Envelope) -> str:
    return "\n".join(block.text for block in envelope.blocks if isinstance(block, TextBlock))


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


def to_json(value: Any) -> Any:
    """Return a script's value as JSON for a tool's arguments: media become their handles, tuples lists.

    Raises:
        ScriptFault: it has something that JSON has not, is too large, or nests too deeply.
    """
    media_in(value)  # raises if it is too large
    return _as_json(value, DEEPEST)


def _as_json(value: Any, left: int) -> Any:
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
        return json.dumps(_readable(value), ensure_ascii=False)
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
    if value is None or isinstance(value, bool | int | float | str):
        return to_json_safe(value)
    if isinstance(value, _WRITTEN):
        return plain(str(value), 200)
    return plain(str(getattr(value, "name", None) or type(value).__name__), 100)


def _named(media: Media) -> str:
    pixels = f", {media.width}x{media.height}" if media.width and media.height else ""
    return f'[{media.type}: {plain(media.mime_type, 80)}{pixels}, {media.size:,} bytes; handle "{media.handle}"]'

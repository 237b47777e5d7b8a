"""Handles where the gateway, or a program with content handles of its own, wrote them: in text, and in JSON.

Found are the gateway's own lines (`...; handle img_7h3k2m9q4w8x]`, `... handle "img_7h3k2m9q4w8x"]`), `content://`
uris, and objects that name a handle (`{"kind": "image", "handle_id": "img_7h3k2m9q4w8x"}`), also as JSON within text.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

_HANDLE = r"(?:img|aud|vid|doc|mod|cad|txt|bin)_[0-9a-z]{12}"
_QUOTE = r"\\{0,3}[\"']"
_NAMED = re.compile(
    rf"(?:content://|\bhandle(?:_id)?(?:{_QUOTE}\s?:)?\s?(?:{_QUOTE})?)({_HANDLE})(?![0-9A-Za-z])"
    # The guide's own handle objects call it `id`.
    rf"|{_QUOTE}id{_QUOTE}\s?:\s?{_QUOTE}({_HANDLE}){_QUOTE}"
)
_WHOLE = re.compile(_HANDLE)
_KEYS = ("handle_id", "handle", "id")
_DEEPEST = 40


def handles_in_text(text: str) -> tuple[str, ...]:
    """The handles that a text names, in order, each once."""
    if "_" not in text:
        return ()
    return tuple(dict.fromkeys(match[1] or match[2] for match in _NAMED.finditer(text)))


def handles_in_value(value: Any) -> tuple[str, ...]:
    """The handles that a JSON value names anywhere, in order, each once."""
    return tuple(dict.fromkeys(_walk(value, 0)))


def _walk(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from handles_in_text(value)
    elif depth > _DEEPEST:
        return
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _walk(item, depth + 1)
    elif isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        for key in _KEYS:
            named = members.get(key)
            if isinstance(named, str) and _WHOLE.fullmatch(named):
                yield named
        for member in members.values():
            yield from _walk(member, depth + 1)

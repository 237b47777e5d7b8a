"""Find handles in text and JSON, written by the gateway or by a program with its own content handles.

These are the gateway's own lines (`...; handle img_7h3k2m9q4w8x]`, `... handle "img_7h3k2m9q4w8x"]`), `content://`
URIs, and objects that name a handle (`{"kind": "image", "handle_id": "img_7h3k2m9q4w8x"}`), even as JSON within text.
"""

import re
from collections.abc import Iterator
from typing import Any

from gateway.core import wording
from gateway.core.model.json_values import is_dict, is_list

_HANDLE = r"(?:img|aud|vid|doc|mod|cad|txt|bin)_[0-9a-z]{12}"
_QUOTE = r"\\{0,3}[\"']"
_NAMED = re.compile(
    rf"(?:content://|\bhandle(?:_id)?(?:{_QUOTE}\s?:)?\s?(?:{_QUOTE})?)({_HANDLE})(?![0-9A-Za-z])"
    # Handle objects of the kind in the guide call it `id`.
    rf"|{_QUOTE}id{_QUOTE}\s?:\s?{_QUOTE}({_HANDLE}){_QUOTE}"
)
_OF_SHOWN = re.compile(
    rf"(?:{wording.PAGES_AS_IMAGES}; (?:open it with [\w-]{{1,80}}, )?"
    r"|; for details call [\w-]{1,80} with |; whole under )$"
)
"""The text before a handle of media shown beside it: a document's pages, a scaled image, a first frame."""
_LONGEST_BEFORE = 200
_WHOLE = re.compile(_HANDLE)
_KEYS = ("handle_id", "handle", "id")
_DEEPEST = 40


def handles_in_text(text: str, *, shown: bool = True) -> tuple[str, ...]:
    """Return the handles that a text names, in order, each once.

    If `shown` is false, handles in captions are left out, because their media is beside the text.
    """
    if "_" not in text:
        return ()
    named = (match for match in _NAMED.finditer(text) if shown or not _is_of_shown(text, match.start()))
    return tuple(dict.fromkeys(match[1] or match[2] for match in named))


def _is_of_shown(text: str, start: int) -> bool:
    return _OF_SHOWN.search(text[max(0, start - _LONGEST_BEFORE) : start]) is not None


def handles_in_value(value: Any, *, shown: bool = True) -> tuple[str, ...]:
    """Return the handles named anywhere in a JSON value, in order, each once; `shown` as in `handles_in_text`."""
    return tuple(dict.fromkeys(_walk(value, 0, shown=shown)))


def _walk(value: Any, depth: int, *, shown: bool) -> Iterator[str]:
    if isinstance(value, str):
        yield from handles_in_text(value, shown=shown)
    elif depth > _DEEPEST:
        return
    elif is_list(value):
        for item in value:
            yield from _walk(item, depth + 1, shown=shown)
    elif is_dict(value):
        for key in _KEYS:
            named = value.get(key)
            if isinstance(named, str) and _WHOLE.fullmatch(named):
                yield named
        for member in value.values():
            yield from _walk(member, depth + 1, shown=shown)

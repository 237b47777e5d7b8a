"""Checking the text that a model reads of a tool's own result.

That is its texts, its structured values, its links, and the names of media that are not shown.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from gateway.core.model.json_values import as_list, is_dict, is_list
from gateway.hosts.simulators.base64_runs import base64_runs
from gateway.hosts.simulators.originals import original_images
from gateway.hosts.simulators.seen import Seen, SeenAudio, SeenDocument

JSON = "application/json"
OPENING_CHARS = 60
MOST_VALUES = 8
"""Maximum number of structured values that are looked for: long content may be cut, but not at its beginning."""
_BEGINNING_CHARS = 400
"""Characters of the JSON of structured content that are looked for as a whole."""
TELLING_CHARS = 16
"""A text with a shorter opening may occur anywhere by chance, and is not counted."""
_NAMED = re.compile(r"\[[^\[\]{}]{1,2000}\]")
_PLAIN = re.compile(r"\A([ !#-\[\]-~]*).*", re.DOTALL)
_HIDDEN = re.compile(r"data:|!\[|<img")
_PAGE = "ui://"
_SOUND = re.compile(r"\b(?:audio|sound)\b", re.IGNORECASE)
_IMAGE = re.compile(r"\bimage\b", re.IGNORECASE)
_BYTES = re.compile(r"\b(?:document|resource|file|audio|sound|video|content)\b", re.IGNORECASE)


def words(text: str) -> str:
    """Return the words of a text with single spaces between them, so that formatting makes no difference."""
    return " ".join(re.findall(r"[A-Za-z0-9]+", text))


def read_by(seen: Seen) -> str:
    """Return the words of everything that the model reads, including JSON that is passed on as a document."""
    documents = [part.data for part in seen.parts if isinstance(part, SeenDocument) and part.media_type == JSON]
    return words("\n".join([seen.text, *(base64.b64decode(data).decode() for data in documents)]))


def openings(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the first words of every text of a result, the address of every link, and the first structured values.

    Pages are left out: see `pages_lost`.
    """
    for block in _blocks(result):
        if _page_in(block) is not None:
            continue
        match block:
            case {"type": "text", "text": str(text)} | {"type": "resource", "resource": {"text": str(text)}}:
                opening = _opening(text)
            case {"type": "resource_link", "uri": str(uri)}:
                opening = words(uri)
            case _:
                continue
        if opening:
            yield opening
    yield from _first_values(result)


def pages_lost(result: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    """Yield the first words of embedded pages whose HTML is not read, and which no line names either.

    Pages are for the user: a line with the URI is all that a model needs of one.
    """
    read, lines = read_by(seen), _lines(seen)
    for page in filter(None, map(_page_in, _blocks(result))):
        opening, uri = _opening(page["text"]), page["uri"]
        if opening not in read and not any(uri in line for line in lines):
            yield opening


def _page_in(block: Any) -> Mapping[str, Any] | None:
    """Return the contents of a block that is a page (mcp-ui) with its text; None for any other.

    Hosts decide by the scheme alone.
    """
    match block:
        case {"type": "resource", "resource": {"uri": str(uri), "text": str()} as contents} if uri.startswith(_PAGE):
            return cast("Mapping[str, Any]", contents)
        case _:
            return None


def read_again(result: Mapping[str, Any], seen: Seen) -> tuple[str, ...]:
    """Return the beginnings of texts that the model reads more often than the tool wrote them, as they are written.

    Structured content may say more than its text twin; it adds nothing only if it is the twin of a text. Where its
    values are all too short to tell, it is told by its beginning, in whichever way it may be written.
    """
    texts = [text for block in _blocks(result) if is_dict(block) and isinstance(text := block.get("text"), str)]
    value = result.get("structuredContent")
    twins = [] if value is None else [text for text in texts if is_json_of(text, value)]
    if value is not None and not twins:
        texts.append(json.dumps(value, ensure_ascii=False))
    said, read = words("\n".join(texts)), read_by(seen)
    values = {_opening(one): one for one in islice(_values(value), MOST_VALUES)}
    found = {_opening(text): text for text in texts} | values
    again = [one for one in sorted(found) if len(one) >= TELLING_CHARS and read.count(one) > said.count(one)]
    beginnings = tuple(_beginning(found[one]) for one in again)
    if value is None or max(map(len, values), default=0) >= TELLING_CHARS:
        return beginnings
    return (*beginnings, *_data_again(value, twins, said, read))


def _data_again(value: Any, twins: list[str], said: str, read: str) -> Iterator[str]:
    """Yield the beginning of data that is read more often than it was said, in whichever way it is written."""
    dumped = json.dumps(value, ensure_ascii=False)
    forms = {words(form[:_BEGINNING_CHARS]) for form in (dumped, json.dumps(value), *twins)}
    if min(map(len, forms)) >= TELLING_CHARS and sum(map(read.count, forms)) > sum(map(said.count, forms)):
        yield dumped[:OPENING_CHARS]


def _beginning(text: str) -> str:
    """Return the part of a text that was compared, on one line."""
    return " ".join(_compared(text).split())


def named_images(seen: Seen) -> int:
    """Count the bracketed lines that name an image; a placeholder of the host's own does not count."""
    return sum(_IMAGE.search(line) is not None for line in _lines(seen))


def unnamed(result: Mapping[str, Any], seen: Seen) -> tuple[str, ...]:
    """Return the places of sound, documents and other bytes that are neither shown natively nor named in a line."""
    lines = _lines(seen)
    sounds = sum(isinstance(part, SeenAudio) for part in seen.parts)
    files = sum(isinstance(part, SeenDocument) and part.media_type != JSON for part in seen.parts)
    missing: list[str] = []
    for index, block in enumerate(_blocks(result)):
        if (pattern := _names_of(block)) is None:
            continue
        if pattern is _SOUND and sounds:
            sounds -= 1
        elif pattern is _BYTES and files:
            files -= 1
        elif line := next((line for line in sorted(lines) if pattern.search(line)), None):
            lines.remove(line)
        else:
            missing.append(f"content[{index}] ({cast('dict[str, Any]', block)['type']})")
    return tuple(missing)


def _lines(seen: Seen) -> set[str]:
    """Return the bracketed lines that are not the host's own words."""
    return set(_NAMED.findall("\n".join(seen.texts("text", "json", "structured", "error"))))


def _names_of(block: Any) -> re.Pattern[str] | None:
    """Return the pattern of a line that names this block; None if it holds no bytes, or an image that can be shown."""
    if not is_dict(block) or original_images({"content": [block]}):
        return None
    match block:
        case {"type": "audio"}:
            return _SOUND
        case {"type": "image"}:
            return _IMAGE
        case {"type": "resource", "resource": {"blob": str()}}:
            return _BYTES
        case _:
            return None


def _blocks(result: Mapping[str, Any]) -> list[Any]:
    content = result.get("content")
    return as_list(content)


def _first_values(result: Mapping[str, Any]) -> Iterator[str]:
    return map(_opening, islice(_values(result.get("structuredContent")), MOST_VALUES))


def _values(value: Any) -> Iterator[str]:
    """Yield the strings and whole numbers in structured content that have words, in order.

    Some servers repeat their content there: the text of a text block is a value, blocks with bytes are not.
    """
    stack: list[Any] = [value]
    while stack:
        part = stack.pop()
        if is_dict(part):
            stack.extend(reversed(_inside(part)))
        elif is_list(part):
            stack.extend(reversed(part))
        elif isinstance(part, str | int) and not isinstance(part, bool) and _opening(str(part)):
            yield str(part)


def _inside(members: Mapping[str, Any]) -> list[Any]:
    match members:
        case {"type": "text", "text": str(text)}:
            return [text]
        case {"type": "image" | "audio", "data": str()} | {"type": "resource", "resource": dict()}:
            return []
        case _:
            return list(members.values())


def _opening(text: str) -> str:
    """Return the first words, up to anything that a JSON dump would escape or that hides an image."""
    return "" if base64_runs(text[:400]) else words(_compared(text))


def _compared(text: str) -> str:
    return _HIDDEN.split(_PLAIN.sub(r"\1", text.lstrip()[:OPENING_CHARS]), maxsplit=1)[0]


def is_json_of(text: str, value: Any) -> bool:
    """Whether a text is the JSON of this value."""
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False

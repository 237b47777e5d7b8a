"""Attach files that a result only names: some servers save a PDF or a screenshot and return just its path.

Paths are found in texts and in the strings of structured content.

Only upstreams with configured folders (`files`) have this, and only regular files in them count, links resolved.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pybase64

from gateway.core.fact_words import plain
from gateway.core.model import media_types
from gateway.core.model.json_values import is_dict, is_list
from gateway.core.model.notes import Note
from gateway.system.open_below import open_below

MOST_FILES = 10
MOST_BYTES = 32 * 1024 * 1024
MOST_BYTES_READ = 64 * 1024 * 1024
"""Total for all the files that one result names, whether they are shown or not."""
MOST_NAMES = 500
"""Maximum number of different paths of one result that are looked up."""
_LOOKED_AT = 100_000
"""Maximum number of characters of one text that are searched for paths."""

_MOST_CHARACTERS = 1_000_000
"""Maximum number of characters of one result that are searched."""
_MOST_TEXTS = 1_000
"""Maximum number of texts of one result that are searched."""
_MOST_VALUES = 50_000
"""Maximum number of values of structured content that are searched for texts."""
_DEEPEST = 20
"""Maximum depth to which structured content is searched."""
_LONGEST = 400
"""Maximum number of characters of a path before its extension."""

_WORD = re.compile(r"""[^\s"'`()<>\[\]|*?]+""")
_ENDING = re.compile(
    r"\.(?:pdf|png|jpe?g|gif|webp|svg|bmp|tiff?|avif|heic|wav|mp3|flac|ogg|m4a)(?![\w/\\])", re.IGNORECASE
)
"""Neither of these patterns backtracks, so matching takes time linear in the length of any text."""


def with_named_files(
    result: Mapping[str, Any], folders: Sequence[Path], cwd: Path | None
) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
    """Return the result with a block appended for each file that it names, and a note for each.

    Relative paths are relative to `cwd`, where the upstream runs. A file is skipped if it is not below one of
    `folders`, is not a regular file, is larger than `MOST_BYTES`, is not of a known media type, or is already in the
    result. Reads files, so call this in a thread. Never raises.
    """
    blocks = result.get("content")
    if not is_list(blocks) or result.get("isError") is True:
        return result, ()
    allowed = [Path(os.path.realpath(folder)) for folder in folders]
    shown = {data for block in blocks for data in _data(block)}
    found: list[dict[str, Any]] = []
    notes: list[Note] = []
    left = MOST_BYTES_READ
    words = islice(chain(_texts(blocks), _strings(result.get("structuredContent"))), _MOST_TEXTS)
    for path in islice(_paths(words, cwd), MOST_NAMES):
        if len(found) >= MOST_FILES or left <= 0:
            break
        content, real = _content(path, allowed, min(MOST_BYTES, left)) or (b"", path)
        left -= len(content)
        block = _block(content, real)
        if block is None or shown & set(_data(block)):
            continue
        shown.update(_data(block))
        found.append(block)
        notes.append(Note(kind="rescued", text=f"the file {plain(path.name, 100)}, which the text names"))
    return ({**result, "content": [*blocks, *found]}, tuple(notes)) if found else (result, ())


def _texts(blocks: Sequence[Any]) -> Iterator[str]:
    for block in blocks:
        text: Any = block.get("text") if is_dict(block) else None
        if isinstance(text, str):
            yield text


def _strings(value: Any) -> Iterator[str]:
    """The strings in structured content, in order."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        one, depth = waiting.pop()
        if isinstance(one, str):
            yield one
        elif depth < _DEEPEST and (is_dict(one) or is_list(one)):
            inner = one.values() if is_dict(one) else one
            waiting.extend((below, depth + 1) for below in reversed(list(islice(inner, _MOST_VALUES))))


def _paths(texts: Iterable[str], cwd: Path | None) -> Iterator[Path]:
    """The paths named in the texts, without duplicates."""
    here, seen = cwd or Path.cwd(), set[str]()
    for name in _names(texts):
        path = os.path.normpath(here / (unquote(name.removeprefix("file://")) if name.startswith("file://") else name))
        if path not in seen:
            seen.add(path)
            yield Path(path)


def _names(texts: Iterable[str]) -> Iterator[str]:
    left = _MOST_CHARACTERS
    for text in texts:
        looked_at = text[: min(_LOOKED_AT, left)]
        left -= len(looked_at)
        if _ENDING.search(looked_at):
            for word in _WORD.finditer(looked_at):
                yield from _names_in(word[0])


def _names_in(word: str) -> Iterator[str]:
    """The file names in a word, each as long as possible; several may be separated by commas, with text after them."""
    start = end = last = 0
    for ending in _ENDING.finditer(word):
        if end and ending.start() - start > _LONGEST:
            yield word[start:end]
            last, end = end, 0
        if not end:
            start = max(last, ending.start() - _LONGEST)
        if ending.start() > start:
            end = ending.end()
    if end:
        yield word[start:end]


def _content(path: Path, allowed: Sequence[Path], most: int) -> tuple[bytes, Path] | None:
    """Return a file's content and resolved path; None if it is not allowed, not regular, or larger than `most`."""
    try:
        opened = open_below(allowed, path)
        if opened is None:
            return None
        descriptor, real = opened
        with os.fdopen(descriptor, "rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode) or told.st_size > most:
                return None
            return file.read(most + 1), real
    except (OSError, ValueError):
        return None


def _block(content: bytes, real: Path) -> dict[str, Any] | None:
    """Return a file as a block, or None if it is not of a known media type."""
    media_type = media_types.inspect(content).media_type
    data = pybase64.b64encode(content).decode("ascii")
    match media_types.family(media_type):
        case "image":
            return {"type": "image", "data": data, "mimeType": media_type}
        case "audio":
            return {"type": "audio", "data": data, "mimeType": media_type}
        case "document":
            return {"type": "resource", "resource": {"uri": real.as_uri(), "mimeType": media_type, "blob": data}}
        case _:
            return None


def _data(block: Any) -> Iterator[str]:
    if is_dict(block):
        resource: Any = block.get("resource")
        for value in (
            block.get("data"),
            resource.get("blob") if is_dict(resource) else None,
        ):
            if isinstance(value, str):
                yield value

"""Files that an upstream names in words, as content: servers save a PDF or a screenshot and tell only its path.

In text, and in the strings of structured content.

Only for upstreams that were given folders for it (`files`), and only regular files in these folders, links followed.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import pybase64

from gateway.core.model import media_types
from gateway.core.model.notes import Note
from gateway.core.wording import plain
from gateway.folders import open_below

MOST_FILES = 10
MOST_BYTES = 32 * 1024 * 1024
_LOOKED_AT = 100_000
"""How many characters of one text are looked through for paths."""

_MOST_TEXTS = 1_000
"""How many texts of one result are looked through."""
_DEEPEST = 20
"""How deep structured content is looked into."""

_PATH = re.compile(
    r"""[^\s"'`()<>\[\]|*?]{1,400}\.(?:pdf|png|jpe?g|gif|webp|svg|bmp|tiff?|avif|heic|wav|mp3|flac|ogg|m4a)(?![\w/\\])""",
    re.IGNORECASE,
)


def with_named_files(
    result: Mapping[str, Any], folders: Sequence[Path], cwd: Path | None
) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
    """The result with a block after the others for each file that it names, and a note of each.

    Relative paths are relative to `cwd`, where the upstream runs. What is not below one of `folders`, is no regular
    file, is over `MOST_BYTES`, is no known media, or stands in the result already, is passed over. Reads files: call it
    in a thread. Never raises.
    """
    content = result.get("content")
    if not isinstance(content, list) or result.get("isError") is True:
        return result, ()
    blocks = cast("list[Any]", content)
    allowed = [Path(os.path.realpath(folder)) for folder in folders]
    shown = {data for block in blocks for data in _data(block)}
    found: list[dict[str, Any]] = []
    notes: list[Note] = []
    words = islice(chain(_texts(blocks), _strings(result.get("structuredContent"))), _MOST_TEXTS)
    for path in dict.fromkeys(_named(words, cwd)):
        if len(found) >= MOST_FILES:
            break
        block = _block(path, allowed)
        if block is None or shown & set(_data(block)):
            continue
        shown.update(_data(block))
        found.append(block)
        notes.append(Note(kind="rescued", text=f"the file {plain(path.name, 100)}, which the text names"))
    return ({**result, "content": [*blocks, *found]}, tuple(notes)) if found else (result, ())


def _texts(blocks: Sequence[Any]) -> Iterator[str]:
    for block in blocks:
        text: Any = cast("dict[str, Any]", block).get("text") if isinstance(block, dict) else None
        if isinstance(text, str):
            yield text


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _DEEPEST and isinstance(value, dict | list):
        inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
        for one in inner:
            yield from _strings(one, depth + 1)


def _named(texts: Iterable[str], cwd: Path | None) -> Iterator[Path]:
    for text in texts:
        for match in _PATH.finditer(text[:_LOOKED_AT]):
            name = match[0]
            if name.startswith("file://"):
                name = unquote(name.removeprefix("file://"))
            yield Path(os.path.normpath((cwd or Path.cwd()) / name))


def _block(path: Path, allowed: Sequence[Path]) -> dict[str, Any] | None:
    """The file as a block; None unless it is media in an allowed folder."""
    try:
        opened = open_below(allowed, path)
        if opened is None:
            return None
        descriptor, real = opened
        with os.fdopen(descriptor, "rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode) or told.st_size > MOST_BYTES:
                return None
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
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
    if isinstance(block, dict):
        members = cast("dict[str, Any]", block)
        resource: Any = members.get("resource")
        for value in (
            members.get("data"),
            cast("dict[str, Any]", resource).get("blob") if isinstance(resource, dict) else None,
        ):
            if isinstance(value, str):
                yield value

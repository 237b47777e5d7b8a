"""Media of a result written to files, under names that are ours: nothing of an upstream decides where a file goes."""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.core.model.blocks import Block, Found, TextBlock, UnknownBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.media_types import extension
from gateway.errors import ContentError


def save_media(envelope: Envelope, folder: Path, stem: str) -> Mapping[int, Path]:
    """Write every image, sound and embedded file of the envelope; by block index, where it is now.

    Files are called `<stem>-<number>.<ending of the type>`. Nothing that exists is written over.

    Raises:
        ContentError: the folder or a file cannot be written.
    """
    saved: dict[int, Path] = {}
    names = _free_names(folder, safe_stem(stem))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, found in media_of(envelope):
            name = next(names)
            path = name.with_name(f"{name.name}.{extension(found.media_type)}")
            with path.open("xb") as file:
                file.write(b64decode(found.data))
            saved[index] = path
    except OSError as error:
        raise ContentError(f"cannot write to {folder}: {(error.strerror or 'unknown cause').lower()}") from None
    return saved


def media_of(envelope: Envelope) -> Iterator[tuple[int, Found]]:
    """What the envelope holds in bytes that can be read, by block index."""
    for index, block in enumerate(envelope.blocks):
        if (found := found_of(block)) is not None:
            yield index, found


def found_of(block: Block) -> Found | None:
    """What a block holds in bytes; None where it holds none, or broken base64."""
    return None if isinstance(block, TextBlock | UnknownBlock) else getattr(block, "found", None)


def safe_stem(text: str) -> str:
    """The text as the beginning of a file name: no separators, no leading dot or dash, not long."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-_")[:80].rstrip(".-_") or "result"


def _free_names(folder: Path, stem: str) -> Iterator[Path]:
    """`folder/<stem>-<number>` for every number that no file there has yet."""
    number = 0
    while True:
        number += 1
        beginning = f"{stem}-{number}"
        if not folder.is_dir() or not any(path.stem == beginning for path in folder.iterdir()):
            yield folder / beginning

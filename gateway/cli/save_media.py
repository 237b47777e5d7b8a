"""Save the media of a result to files with generated names, so that an upstream never decides where a file goes."""

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.core.model.blocks import Block, Found, TextBlock, UnknownBlock
from gateway.core.model.envelope import Envelope
from gateway.core.model.media_types import extension
from gateway.errors import ContentError


def save_media(envelope: Envelope, folder: Path, stem: str) -> Mapping[int, Path]:
    """Write every image, sound and embedded file of the envelope, and return the paths by block index.

    Files are named `<stem>-<number>.<extension of the type>`. Existing files are never overwritten.

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
    """The readable media in the envelope, by block index."""
    for index, block in enumerate(envelope.blocks):
        if (found := found_of(block)) is not None:
            yield index, found


def found_of(block: Block) -> Found | None:
    """The media in a block; None if it has none, or its base64 is invalid."""
    return None if isinstance(block, TextBlock | UnknownBlock) else getattr(block, "found", None)


def safe_stem(text: str) -> str:
    """Make a text safe as the beginning of a file name: short, without separators and leading dots or dashes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-_")[:80].rstrip(".-_") or "result"


def _free_names(folder: Path, stem: str) -> Iterator[Path]:
    """Yield `folder/<stem>-<number>` for every number that no file there has yet."""
    number = 0
    while True:
        number += 1
        beginning = f"{stem}-{number}"
        if not folder.is_dir() or not any(path.stem == beginning for path in folder.iterdir()):
            yield folder / beginning

"""Writing files atomically, readable only by their owner. Standard library only."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

DRAFT = ".draft"
"""The suffix of a file that is not complete yet: one found later was left behind by a process that was killed."""


@contextmanager
def replacing(path: Path) -> Generator[IO[bytes]]:
    """Yield a new file that replaces `path` when the block ends, and is removed if the block fails.

    Raises:
        OSError: it cannot be created, or cannot be moved into its place.
    """
    # Created by `mkstemp`, so that nobody else can read it at any time (mode 0600).
    draft = tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:100]}-", suffix=DRAFT, delete=False)  # noqa: SIM115
    try:
        with draft as file:
            yield file
        os.replace(draft.name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft.name)
        raise


def write_file(path: Path, content: bytes) -> None:
    """Replace the content of the file. Raises OSError."""
    with replacing(path) as file:
        file.write(content)


def write_new_file(path: Path, content: bytes) -> bool:
    """Write `content` to a file that does not exist yet; do nothing and return False if another process was first.

    Raises OSError.
    """
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}-", suffix=DRAFT)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(draft)
    return True

"""Files that appear whole or not at all, readable by their owner alone. Standard library only."""

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

DRAFT = ".draft"
"""The suffix of a file that is not whole yet: one that is found later was left behind by a process that was killed."""


@contextmanager
def replacing(path: Path) -> Generator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends, and goes without a trace when it fails.

    Raises:
        OSError: it cannot be made, or cannot be moved into its place.
    """
    # Made by `mkstemp`, so that nobody else may read it at any time (mode 0600).
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
    """Put `content` into the file, in place of what it held. Raises OSError."""
    with replacing(path) as file:
        file.write(content)


def write_new_file(path: Path, content: bytes) -> bool:
    """Put `content` into a file that does not exist yet; false, and nothing done, where another process was first.

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

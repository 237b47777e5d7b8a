"""Opening files in allowed folders safely, even if something is replaced by a link in the meantime."""

import os
from collections.abc import Iterable
from pathlib import Path

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | _NO_LINKS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_below(folders: Iterable[Path], path: Path) -> tuple[int, Path] | None:
    """Return a read-only descriptor of the file and its real path; None unless it is below one of the folders.

    Each folder on the path is opened by its descriptor and without following links (if the system can), so that a
    folder replaced by a link after the check is not followed. Raises OSError, ValueError.
    """
    real = Path(os.path.realpath(path))
    for folder in folders:
        root = Path(os.path.realpath(folder))
        if real != root and real.is_relative_to(root):
            return _descended(root, real), real
    return None


def _descended(root: Path, real: Path) -> int:
    if os.open not in os.supports_dir_fd:
        return os.open(real, _READ)
    *inner, last = real.relative_to(root).parts
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS)
    try:
        for name in inner:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS, dir_fd=at)
            os.close(at)
            at = below
        return os.open(last, _READ, dir_fd=at)
    finally:
        os.close(at)

"""Whether the content of a configuration file, or what it needs, has changed. Standard library only."""

import hashlib
import os
import sys
from pathlib import Path

_LARGEST = 16 * 1024 * 1024

Usability = tuple[bytes | None, tuple[int, ...]]
"""The file's fingerprint, and when packages were last installed or removed."""


def fingerprint(path: Path) -> bytes | None:
    """Return a digest of the file's content, or None if it does not exist or cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(_LARGEST)).digest()
    except OSError:
        return None


def usability(path: Path) -> Usability:
    """Return what decides whether a configuration can be used: its file's content, and which packages are installed."""
    folders = [folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages"))]
    return fingerprint(path), tuple(os.stat(folder).st_mtime_ns for folder in folders if os.path.isdir(folder))

"""Whether the content of a configuration file has changed. Standard library only."""

import hashlib
from pathlib import Path

_LARGEST = 16 * 1024 * 1024


def fingerprint(path: Path) -> bytes | None:
    """Return a digest of the file's content, or None if it does not exist or cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(_LARGEST)).digest()
    except OSError:
        return None

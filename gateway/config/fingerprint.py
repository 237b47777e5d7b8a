"""Whether the content of a configuration file, or what it needs, has changed. Standard library only."""

import hashlib
import sysconfig
from contextlib import suppress
from pathlib import Path

_LARGEST = 16 * 1024 * 1024


def fingerprint(path: Path) -> bytes | None:
    """Return a digest of the file's content, or None if it does not exist or cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(_LARGEST)).digest()
    except OSError:
        return None


def usability(path: Path) -> tuple[bytes | None, int]:
    """Return what decides whether a configuration can be used: its file's content, and which packages are installed."""
    installed = 0
    with suppress(OSError):
        installed = Path(sysconfig.get_path("purelib")).stat().st_mtime_ns
    return fingerprint(path), installed

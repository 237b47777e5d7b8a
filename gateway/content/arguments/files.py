"""Temporary files for tools that want a path: the user's alone, and gone after the call, or with the next start.

A gateway's files lie in a folder of its own. Beside it lies a file that it holds locked as long as it lives, so that
whoever starts later can tell a folder that was left behind from one in use, in another container too.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from anyio import to_thread

_LOCK = ".lock"
_PREFIX = "call-"


class TemporaryFiles:
    """Folders for calls, below `base`; None: below the system's folder for temporary files, and never swept.

    Nothing is made before the first call that needs it.
    """

    def __init__(self, base: Path | None) -> None:
        self._base = base
        self._folder: Path | None = None
        self._lock: int | None = None

    @contextmanager
    def folder(self) -> Generator[Path]:
        """A new folder for the files of one call, which goes with them when this is left. Raises OSError."""
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._own()))  # 0700, whatever the umask
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what gateways left behind that were killed. Never raises: what cannot be removed stays."""
        if self._base is None:
            return
        with suppress(OSError):
            for lock in self._base.glob(f"*{_LOCK}"):
                with suppress(OSError):
                    _remove_if_dead(lock)

    def close(self) -> None:
        """Remove all of it."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            if self._folder is not None:
                with suppress(OSError):
                    self._folder.with_suffix(_LOCK).unlink()
        self._folder = self._lock = None

    def _own(self) -> Path:
        if self._folder is None:
            if self._base is None:
                self._folder = Path(tempfile.mkdtemp(prefix="mcp-gateway-"))
            else:
                self._base.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._lock, self._folder = _locked_folder(self._base)
        return self._folder


@asynccontextmanager
async def temporary_files(base: Path | None) -> AsyncGenerator[TemporaryFiles]:
    """Temporary files for as long as this is open, what was left behind swept away first."""
    files = TemporaryFiles(base)
    if base is not None:
        await to_thread.run_sync(files.sweep)
    try:
        yield files
    finally:
        files.close()


def _locked_folder(base: Path) -> tuple[int, Path]:
    while True:
        lock, name = tempfile.mkstemp(suffix=_LOCK, dir=base)
        # One who sweeps may have taken it for a dead one's, before it was locked.
        if _try_lock(lock) and _is_there(lock, name):
            folder = Path(name).with_suffix("")
            folder.mkdir(mode=0o700)
            return lock, folder
        os.close(lock)


def _remove_if_dead(path: Path) -> None:
    lock = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not _try_lock(lock):
            return
        shutil.rmtree(path.with_suffix(""), ignore_errors=True)
        if sys.platform != "win32":
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)
    if sys.platform == "win32":
        path.unlink(missing_ok=True)


def _is_there(descriptor: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name))
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed, or this process has ended; whether nobody else had."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

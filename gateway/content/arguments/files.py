"""Temporary files for tools that want a path: private to the user, and removed after the call or at the next start.

Each gateway has a folder of its own, and beside it a file that it keeps locked while it runs. A gateway that starts
later can thus tell an abandoned folder from one in use, even by another container.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from anyio import to_thread

from gateway.system.file_lock import try_lock

_LOCK = ".lock"
_PREFIX = "call-"


class TemporaryFiles:
    """Folders for calls, below `base`. If that is None, they are in the system's temporary folder and never swept.

    Nothing is created before the first call that needs it.
    """

    def __init__(self, base: Path | None) -> None:
        self._base = base
        self._folder: Path | None = None
        self._lock: int | None = None

    @contextmanager
    def folder(self) -> Generator[Path]:
        """Create a folder for the files of one call, and remove it with them on exit. Raises OSError."""
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._own()))  # 0700, whatever the umask
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what killed gateways left behind. Never raises: what cannot be removed stays."""
        if self._base is None:
            return
        with suppress(OSError):
            for lock in self._base.glob(f"*{_LOCK}"):
                with suppress(OSError):
                    _remove_if_dead(lock)

    def close(self) -> None:
        """Remove this gateway's folder and its lock."""
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
    """Sweep away what was left behind, and provide temporary files while the context is open."""
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
        # Before it was locked, a gateway that sweeps may have taken it for abandoned.
        if try_lock(lock) and _is_there(lock, name):
            folder = Path(name).with_suffix("")
            folder.mkdir(mode=0o700)
            return lock, folder
        os.close(lock)


def _remove_if_dead(path: Path) -> None:
    lock = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not try_lock(lock):
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

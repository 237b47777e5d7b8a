"""Files that a host may open: content that it cannot show, in a permitted folder.

Files are written to one folder only, under generated names, readable by this user only, and removed later. Others may
write to a host's workspace too, so nothing in it is followed, replaced or trusted.
"""

import hashlib
import os
import re
import secrets
import stat
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from gateway.config.content_settings import FilesSettings
from gateway.core.model import media_types
from gateway.errors import NotWritten

OWN_FOLDER = ".mcp-gateway"
"""The name of the gateway's folder in a host's workspace."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_STEM = 40
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_IGNORE_FILE = ".gitignore"
_IGNORED = b"# Files of mcp-gateway for the host that works here; they are removed again.\n*\n"


@dataclass(frozen=True)
class _Written:
    size: int
    expires_at: float


class HostFiles:
    """Writes files for hosts, and removes them later. An async context manager: leaving it removes the rest."""

    def __init__(self, settings: FilesSettings) -> None:
        self._settings = settings
        # Gateways that write to the same folder do not share files: each removes its own.
        self._tag = secrets.token_hex(3)
        self._files: OrderedDict[Path, _Written] = OrderedDict()
        self._folders: set[Path] = set()
        self._turn = anyio.Lock()
        self._came = anyio.Event()
        self._tasks: TaskGroup | None = None

    async def __aenter__(self) -> "HostFiles":
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        tasks.start_soon(self._remove_expired)
        self._tasks = tasks
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # First, and without awaiting anything, so that no file is left whatever else goes wrong.
        _remove(list(self._files))
        for folder in self._folders:
            with suppress(OSError):
                if _holds(folder / _IGNORE_FILE, _IGNORED):
                    (folder / _IGNORE_FILE).unlink()
                folder.rmdir()
        self._files.clear()
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            tasks.cancel_scope.cancel()
            # Errors of the body are kept from the task group, which would wrap them in an ExceptionGroup.
            if isinstance(error, anyio.get_cancelled_exc_class()):
                await tasks.__aexit__(kind, error, traceback)
            else:
                await tasks.__aexit__(None, None, None)

    async def write(
        self, content: bytes, media_type: str, name: str | None, folders: Callable[[], Awaitable[Collection[str]]]
    ) -> str:
        """Write the content to a file and return its absolute path. The same content and name give one file.

        `folders` returns the host's roots as URIs; it is called only if `[files] roots` permits it.

        Raises:
            NotWritten: no folder is permitted, or the file cannot be written there.
        """
        parent, own = await self._folder(folders)
        if len(content) > self._settings.max_bytes:
            raise NotWritten("it is larger than [files] max_bytes")
        async with self._turn:
            try:
                path = await to_thread.run_sync(_write, parent, own, content, media_type, name, self._tag)
            except OSError as error:
                words = (error.strerror or "it cannot be written").lower()
                raise NotWritten(f"no file could be written for the host: {words}") from error
            if own:
                self._folders.add(path.parent)
            self._files.pop(path, None)
            self._files[path] = _Written(len(content), anyio.current_time() + self._settings.expires)
            await self._make_room(path)
        self._came.set()
        return str(path)

    async def _folder(self, folders: Callable[[], Awaitable[Collection[str]]]) -> tuple[Path, bool]:
        """Return the folder to write to, and whether it is the gateway's own folder in a workspace of the host."""
        if self._settings.dir is not None:
            return self._settings.dir, False
        if not self._settings.roots:
            raise NotWritten("no folder is allowed for files")
        for root in await folders():
            path = _local_folder(root)
            if path is not None and os.access(path, os.W_OK):
                return path / OWN_FOLDER, True
        raise NotWritten("the host names no folder of its own that can be written to")

    async def _make_room(self, newest: Path) -> None:
        size = sum(written.size for written in self._files.values())
        oldest: list[Path] = []
        for path, written in self._files.items():
            if size <= self._settings.max_bytes or path == newest:
                break
            oldest.append(path)
            size -= written.size
        await self._forget(oldest)

    async def _forget(self, paths: list[Path]) -> None:
        for path in paths:
            self._files.pop(path, None)
        await to_thread.run_sync(_remove, paths)

    async def _remove_expired(self) -> None:
        while True:
            if not self._files:
                self._came = anyio.Event()
                await self._came.wait()
                continue
            await anyio.sleep_until(next(iter(self._files.values())).expires_at)
            async with self._turn:
                now = anyio.current_time()
                await self._forget([path for path, written in self._files.items() if written.expires_at <= now])


def _file_name(content: bytes, media_type: str, name: str | None, tag: str) -> str:
    """Return a descriptive name with the content's hash, without characters special to shells or file systems."""
    last = re.split(r"[?#]", name or "", maxsplit=1)[0].rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
    stem = _UNSAFE.sub("-", unquote(last).rpartition(".")[0] or last).strip("-")[:_LONGEST_STEM].strip("-")
    digest = hashlib.sha256(content).hexdigest()[:16]
    return f"{stem or media_types.family(media_type)}-{digest}-{tag}.{media_types.extension(media_type)}"


def _local_folder(uri: str) -> Path | None:
    """Return the folder of a host's root; None unless it is a folder on this machine."""
    try:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            return None
        folder = unquote(parts.path)
        path = Path(folder[1:] if os.name == "nt" and re.match(r"/[A-Za-z]:", folder) else folder)
        # The root of a file system is never a workspace.
        return path if path.is_absolute() and path.parent != path and path.is_dir() else None
    except (ValueError, OSError):
        return None


def _write(folder: Path, own: bool, content: bytes, media_type: str, name: str | None, tag: str) -> Path:
    """Write the file and return its path. Raises OSError; never writes through a link or over another file."""
    if own:
        folder = Path(os.path.realpath(folder.parent)) / folder.name
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
    else:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(os.path.realpath(folder))
    if not stat.S_ISDIR(os.lstat(folder).st_mode):
        raise NotADirectoryError(20, "not a folder")
    if own:
        _write_new(folder / _IGNORE_FILE, _IGNORED)
    path = folder / _file_name(content, media_type, name, tag)
    if not _write_new(path, content) and not _holds(path, content):
        raise FileExistsError(17, "another file has its name")
    return path


def _write_new(path: Path, content: bytes) -> bool:
    """Create a file. Return False if something of that name exists."""
    # By the folder's descriptor, so that replacing the folder by a link meanwhile has no effect.
    by_descriptor = os.open in os.supports_dir_fd
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | _NO_LINKS) if by_descriptor else None
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINKS
        descriptor = os.open(path.name if by_descriptor else path, flags, 0o600, dir_fd=folder)
    except FileExistsError:
        return False
    finally:
        if folder is not None:
            os.close(folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return True


def _holds(path: Path, content: bytes) -> bool:
    told = os.lstat(path)
    if not stat.S_ISREG(told.st_mode) or told.st_size != len(content):
        return False
    return path.read_bytes() == content


def _remove(paths: list[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()

"""Noticing that a configuration file has changed: written in place, renamed into place, or behind a link that moved.

Watched are folders, not the file: editors save by renaming, and a ConfigMap's files are links through `..data`, itself
a link that is swapped. Whether anything has really changed is decided by the file's content.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

logger = logging.getLogger(__name__)

_LARGEST = 16 * 1024 * 1024
_MOST_LINKS = 20
_CHECK_MILLISECONDS = 5_000
"""Without any news the file is looked at so often: some file systems never tell."""
_DEBOUNCE_MILLISECONDS = 400
_STEP_MILLISECONDS = 50
_BEGINNING_SECONDS = 0.5
_RETURN_SECONDS = 0.5
"""How long a file may be gone before that counts: some editors move it away before they write it."""


def fingerprint(path: Path) -> bytes | None:
    """A digest of the file's content; None when there is no such file, or it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.sha256(file.read(_LARGEST)).digest()
    except OSError:
        return None


def folders_of(path: Path) -> frozenset[Path]:
    """The folders in which a change may change the file: its own, and those that it is linked from and to."""
    folders = {path.parent}
    for _ in range(_MOST_LINKS):
        try:
            path = path.parent / path.readlink()
        except OSError:  # no link
            break
        folders.add(path.parent)
    return frozenset(folder for folder in folders if folder.is_dir())


async def watch(path: Path, seen: bytes | None, changed: Callable[[], Awaitable[None]]) -> None:
    """Call `changed` whenever the content of the file is another than before, `seen` at first. Until cancelled."""
    stopped = anyio.Event()
    async with anyio.create_task_group() as tasks:
        watcher = _Watcher(path, seen, changed, tasks)
        # The thread that waits for news has to be told of the end: it cannot be cancelled.
        tasks.start_soon(_set_at_the_end, stopped)
        await watcher.run(stopped)


async def _set_at_the_end(event: anyio.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        event.set()


class _Watcher:
    def __init__(
        self, path: Path, seen: bytes | None, changed: Callable[[], Awaitable[None]], tasks: TaskGroup
    ) -> None:
        self._tasks = tasks
        self._looking = anyio.Lock()
        self._path = path
        self._seen = seen
        self._changed = changed

    async def run(self, stopped: anyio.Event) -> None:
        await self._look()
        warned = False
        while not stopped.is_set():
            try:
                await self._until_moved(folders_of(self._path), stopped)
            except Exception as error:
                # Too many watches on this machine, a folder that is gone, no library for it: then it is looked at now
                # and then. Whatever it is, it must not end the gateway.
                if not warned:
                    seconds = _CHECK_MILLISECONDS / 1_000
                    logger.warning("changes of %s are noticed within %g s: %s", self._path, seconds, error)
                warned = True
                await anyio.sleep(_CHECK_MILLISECONDS / 1_000)
                await self._look()

    async def _until_moved(self, folders: frozenset[Path], stopped: anyio.Event) -> None:
        """Look at the file after each event, until other folders have to be watched."""
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

        news = awatch(
            *sorted(folders),
            watch_filter=None,
            debounce=_DEBOUNCE_MILLISECONDS,
            step=_STEP_MILLISECONDS,
            stop_event=stopped,
            rust_timeout=_CHECK_MILLISECONDS,
            yield_on_timeout=True,
            recursive=False,
        )
        self._tasks.start_soon(self._look_later)
        async with aclosing(news):
            async for _ in news:
                await self._look()
                if folders_of(self._path) != folders:
                    return

    async def _look_later(self) -> None:
        """Once more when the watch has surely begun: what changed before is no event for it."""
        await anyio.sleep(_BEGINNING_SECONDS)
        await self._look()

    async def _look(self) -> None:
        async with self._looking:
            now = await anyio.to_thread.run_sync(fingerprint, self._path)
            if now is None and self._seen is not None:
                await anyio.sleep(_RETURN_SECONDS)
                now = await anyio.to_thread.run_sync(fingerprint, self._path)
            if now != self._seen:
                self._seen = now
                await self._changed()

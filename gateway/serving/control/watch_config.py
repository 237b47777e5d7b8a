"""Watch a configuration file for changes: written in place, renamed into place, or behind a changed link.

Folders are watched, not the file: editors save by renaming, and a ConfigMap's files are links through `..data`, itself
a link that is replaced. Whether the file has really changed is decided by its content.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from gateway.config.fingerprint import fingerprint

logger = logging.getLogger(__name__)

_MOST_LINKS = 20
_CHECK_MILLISECONDS = 5_000
"""Interval for checking the file without any events: some file systems never send them."""
_DEBOUNCE_MILLISECONDS = 400
_STEP_MILLISECONDS = 50
_BEGINNING_SECONDS = 0.5
_RETURN_SECONDS = 0.5
"""How long a file may be missing before that counts: some editors move it away before they write it."""


def folders_of(path: Path) -> frozenset[Path]:
    """The folders in which a change may affect the file: its own, and those of its links and their targets."""
    folders = {path.parent}
    for _ in range(_MOST_LINKS):
        try:
            path = path.parent / path.readlink()
        except OSError:  # not a link
            break
        folders.add(path.parent)
    return frozenset(folder for folder in folders if folder.is_dir())


async def watch(path: Path, seen: bytes | None, changed: Callable[[], Awaitable[None]]) -> None:
    """Call `changed` whenever the file's content differs from before (at first from `seen`), until cancelled."""
    stopped = anyio.Event()
    async with anyio.create_task_group() as tasks:
        watcher = _Watcher(path, seen, changed, tasks)
        # The thread that waits for events cannot be cancelled, so an event tells it to end.
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
                # Too many watches on this machine, a missing folder, no library for it: then the file is checked now
                # and then. No error here may end the gateway.
                if not warned:
                    seconds = _CHECK_MILLISECONDS / 1_000
                    logger.warning("changes of %s are noticed within %g s: %s", self._path, seconds, error)
                warned = True
                await anyio.sleep(_CHECK_MILLISECONDS / 1_000)
                await self._look()

    async def _until_moved(self, folders: frozenset[Path], stopped: anyio.Event) -> None:
        """Check the file after each event, until other folders need to be watched."""
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
        """Check again once the watch has certainly begun, because it has no events for earlier changes."""
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

"""Named objects in a folder or a bucket, through obstore. Every failure is raised as StoreUnavailable."""

import os
import re
import time
from collections.abc import AsyncIterable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread

from gateway.config.locations import Location
from gateway.content.store.obstore_errors import failing
from gateway.content.store.records import ABOUT, BYTES, GONE, USED
from gateway.content.store.upload_stream import ObjectUpload
from gateway.errors import StoreUnavailable
from gateway.system.native_threads import await_native_threads

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Objects

_AT_ONCE = 16
_CONNECT_SECONDS = 5
_REST_SECONDS = 10.0
_STAGED = re.compile(r".*#\d+")
"""Names of files that obstore is writing, or was when it was killed. Complete files get their final names."""


class FoundObject(NamedTuple):
    """A listed object: its name, a stamp that changes with its content, its size, and when it was written."""

    name: str
    stamp: str
    size: int
    written: float


class Backend:
    """The objects of one store, which is opened on first use."""

    def __init__(self, place: Location, timeout: float) -> None:
        """`timeout` is in seconds, for one response or for one piece of a stream."""
        self.where = place.masked
        self.timeout = timeout
        self._place = place
        self._opened: Objects | None = None
        self._opening = anyio.Lock()
        self._rests_until = 0.0

    @property
    def folder(self) -> Path | None:
        """The store's folder; None for a bucket."""
        return Path(self._place.place) if self._place.scheme == "file" else None

    async def get(self, name: str, *, start: int = 0, end: int | None = None) -> bytes | None:
        """Return the object's bytes; None if there is no such object. A range has to lie within the object."""
        import obstore

        objects = await self._objects()
        try:
            with self._asking(absence_is_answer=True):
                if end is not None:
                    return bytes(await obstore.get_range_async(objects, name, start=start, end=end))
                return bytes(await (await obstore.get_async(objects, name)).bytes_async())
        except FileNotFoundError:
            return None

    async def size(self, name: str) -> int | None:
        """Return the object's size; None if there is no such object."""
        import obstore

        objects = await self._objects()
        try:
            with self._asking(absence_is_answer=True):
                return int((await obstore.head_async(objects, name))["size"])
        except FileNotFoundError:
            return None

    async def put(self, name: str, content: bytes) -> None:
        """Write a small object atomically."""
        import obstore

        objects = await self._objects()
        with self._asking():
            await obstore.put_async(objects, name, content, use_multipart=False)

    async def put_new(self, name: str, content: bytes) -> None:
        """Write a small object unless one of that name exists."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        objects = await self._objects()
        with self._asking():
            try:
                await obstore.put_async(objects, name, content, mode="create")
            except AlreadyExistsError:
                return

    async def upload(self, name: str, chunks: AsyncIterable[bytes]) -> None:
        """Write an object from a stream: all of it, or nothing if the stream raises or the upload is cancelled.

        The stream is read in the caller's own task, one chunk ahead of the writing.
        """
        upload = ObjectUpload(await self._objects(), name, self.where, self.timeout)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(upload.write)
            try:
                await upload.feed(chunks)
            except Exception as error:  # raised below: a task group would wrap it
                failure = error
            finally:
                upload.end()
        # The store's own failure comes first: the stream only notices that its chunks are no longer taken.
        if upload.failure is not None:
            raise upload.failure
        if failure is not None:
            raise failure

    async def delete(self, *names: str) -> None:
        """Remove those of the objects that exist."""
        import obstore

        objects = await self._objects()
        for name in names:
            try:
                with self._asking(absence_is_answer=True):
                    await obstore.delete_async(objects, name)
            except FileNotFoundError:
                continue

    async def list(self, prefix: str) -> list[FoundObject]:
        """Return the objects whose names begin with `prefix` and a slash, in arbitrary order."""
        import obstore

        objects = await self._objects()
        found: list[FoundObject] = []
        try:
            with failing(self.where, absence_is_answer=True):
                # Its overloads name a package for Arrow tables, which is not a dependency.
                stream = aiter(obstore.list(objects, f"{prefix}/"))  # pyright: ignore[reportUnknownMemberType]
                while True:
                    with anyio.fail_after(self.timeout):
                        metas = await anext(stream, None)
                    if metas is None:
                        break
                    for meta in metas:
                        written = meta["last_modified"].timestamp()
                        found.append(FoundObject(meta["path"], f"{meta['e_tag']} {written}", meta["size"], written))
        except FileNotFoundError:
            pass  # removed during the listing: a later listing will show it
        return found

    async def get_each(self, names: Sequence[str]) -> dict[str, bytes]:
        """Return small objects by name, read several at a time; missing ones are left out."""
        found: dict[str, bytes] = {}
        failures: list[Exception] = []
        waiting = iter(names)

        async def work() -> None:
            try:
                for name in waiting:
                    if failures:
                        return
                    if (content := await self.get(name)) is not None:
                        found[name] = content
            except Exception as error:  # raised below: a task group would wrap it
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in range(min(_AT_ONCE, len(names))):
                tasks.start_soon(work)
        if failures:
            raise failures[0]
        return found

    async def remove_staged(self, older_than: float) -> None:
        """Remove unfinished files of killed processes that were last written more than `older_than` seconds ago."""
        if (folder := self.folder) is not None:
            with failing(self.where):
                await anyio.to_thread.run_sync(_remove_staged, folder, time.time() - older_than)

    @contextmanager
    def _asking(self, *, absence_is_answer: bool = False) -> Generator[None]:
        """Guard one small request. After a timeout the store gets no requests for a moment: results are waiting."""
        if anyio.current_time() < self._rests_until:
            raise StoreUnavailable(f"the store {self.where} did not answer a moment ago", remedy="try again later")
        with failing(self.where, absence_is_answer=absence_is_answer):
            with anyio.move_on_after(self.timeout) as asked:
                yield
            if asked.cancelled_caught:
                self._rests_until = anyio.current_time() + _REST_SECONDS
                raise TimeoutError

    async def _objects(self) -> "Objects":
        if self._opened is None:
            async with self._opening:
                if self._opened is None:
                    with failing(self.where):
                        self._opened = await anyio.to_thread.run_sync(_open, self._place, self.timeout)
        return self._opened


def _open(place: Location, timeout: float) -> "Objects":
    from obstore.store import AzureStore, GCSStore, LocalStore, S3Store

    await_native_threads()
    if place.scheme == "file":
        folder = Path(place.place)
        # Only the gateway's own user may read what its callers keep, even in a folder that existed before.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (ABOUT, BYTES, USED, GONE):
            inner = folder / name
            inner.mkdir(mode=0o700, exist_ok=True)
            if os.name == "posix" and inner.stat().st_uid == os.getuid():
                inner.chmod(0o700)
        return LocalStore(folder)
    kind: Any = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}[place.scheme]
    is_plain = any(value.startswith("http://") for value in place.options.values())
    return kind(
        place.place,
        prefix=place.prefix or None,
        config=dict(place.options),
        client_options={
            "connect_timeout": timedelta(seconds=min(_CONNECT_SECONDS, timeout)),
            "timeout": timedelta(seconds=2 * timeout),  # small requests are abandoned earlier
            **({"allow_http": True} if is_plain else {}),
        },
        retry_config={
            "max_retries": 3,
            "retry_timeout": timedelta(seconds=timeout),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
    )


def _remove_staged(folder: Path, before: float) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            try:
                if _STAGED.fullmatch(name) and path.stat().st_mtime < before:
                    path.unlink()
            except FileNotFoundError:
                continue  # another gateway was faster

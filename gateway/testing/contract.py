"""The contract of content stores, as checks that can be run on any store: on the gateway's own, and on yours."""

import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import anyio

from gateway.content.store.content import CHUNK_BYTES, ContentStore, Stored, fetch_bytes
from gateway.errors import ExpiredHandle, UnknownHandle

Check = Callable[[ContentStore], Coroutine[Any, Any, None]]

_LARGE = bytes(range(256)) * 24_576 + b"end"
"""Content of a little over 6 MiB: more than one piece of any stream."""


CHECKS: dict[str, Check] = {}
"""Checks by the sentence of the promise. They may run on one store in sequence: each has owners of its own."""


def _promise(check: Check) -> Check:
    CHECKS[check.__name__.strip("_").replace("_", " ")] = check
    return check


class _Interrupted(Exception):
    """Raised to interrupt a stream."""


@_promise
async def _what_was_put_is_read(store: ContentStore) -> None:
    stored = await store.put(b"hello", owner=_anyone(), media_type="text/plain", name="a.txt")
    _equal((stored.media_type, stored.name, stored.size, stored.kind), ("text/plain", "a.txt", 5, "document"))
    _equal(stored.sha256, hashlib.sha256(b"hello").hexdigest())


@_promise
async def _content_is_read_by_its_handle_and_its_uri_however_a_model_spells_them(store: ContentStore) -> None:
    owner = _anyone()
    stored = await store.put(b"hello", owner=owner, media_type="image/png")
    _equal(stored.uri, f"content://{stored.handle}")
    for spelled in (stored.handle, stored.uri, f" {stored.handle.upper()} ", f"`{stored.handle}`"):
        _equal(await fetch_bytes(store, spelled, owner=owner), b"hello")
        _equal(await store.metadata(spelled, owner=owner), stored)


@_promise
async def _a_part_is_read_and_clamped(store: ContentStore) -> None:
    owner = _anyone()
    handle = (await store.put(b"0123456789", owner=owner, media_type="text/plain")).handle
    parts: Mapping[tuple[int, int | None], bytes] = {
        (0, None): b"0123456789",
        (3, None): b"3456789",
        (3, 5): b"34",
        (0, 99): b"0123456789",
        (10, None): b"",
        (99, 120): b"",
        (5, 3): b"",
        (-5, 2): b"01",
        (0, -5): b"",
    }
    for (start, end), expected in parts.items():
        _equal(await fetch_bytes(store, handle, owner=owner, start=start, end=end), expected)


@_promise
async def _empty_content_is_content(store: ContentStore) -> None:
    for content in (b"", _stream(b"")):
        owner = _anyone()
        stored = await store.put(content, owner=owner, media_type="text/plain")
        _equal((stored.size, await fetch_bytes(store, stored.handle, owner=owner)), (0, b""))


@_promise
async def _the_type_is_kept_normalised(store: ContentStore) -> None:
    expected = {
        "image/JPG; q=1": ("image/jpeg", "image"),
        "": ("application/octet-stream", "other"),
        "application/pdf": ("application/pdf", "document"),
        "model/gltf-binary": ("model/gltf-binary", "3d"),
        "image/vnd.dwg": ("image/vnd.dwg", "cad"),
    }
    for declared, (media_type, kind) in expected.items():
        stored = await store.put(b"x", owner=_anyone(), media_type=declared)
        _equal((stored.media_type, stored.kind), (media_type, kind))


@_promise
async def _equal_bytes_of_one_owner_are_kept_once(store: ContentStore) -> None:
    owner = _anyone()
    first = await store.put(b"same", owner=owner, media_type="image/png")
    second = await store.put(b"same", owner=owner, media_type="application/zip", name="b")
    third = await store.put(_stream(b"sa", b"me"), owner=owner, media_type="text/plain", name="c")
    for later in (second, third):
        _equal((later.handle, later.media_type, later.name), (first.handle, "image/png", "b"))
    _equal(await store.list(owner=owner), (third,))


@_promise
async def _equal_bytes_put_side_by_side_are_kept_once(store: ContentStore) -> None:
    owner, handles = _anyone(), set[str]()

    async def put() -> None:
        handles.add((await store.put(_stream(b"side by ", b"side"), owner=owner, media_type="text/plain")).handle)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(put)
    _equal([stored.handle for stored in await store.list(owner=owner)], list(handles))
    _equal(await fetch_bytes(store, handles.pop(), owner=owner), b"side by side")


@_promise
async def _owners_do_not_see_one_another(store: ContentStore) -> None:
    one, other = _anyone(), _anyone()
    stored = await store.put(b"hers", owner=one, media_type="text/plain")
    never = "txt_000000000000"
    for attempt in (_reading(store), store.metadata, store.delete):
        with _raises(UnknownHandle) as someone_elses:
            await attempt(stored.handle, owner=other)
        with _raises(UnknownHandle) as unknown:
            await attempt(never, owner=other)
        _equal(str(someone_elses[0]).replace(stored.handle, never), str(unknown[0]))
    _equal(await store.list(owner=other), ())
    _equal(await fetch_bytes(store, stored.handle, owner=one), b"hers")


@_promise
async def _owners_share_nothing_that_is_equal(store: ContentStore) -> None:
    one, other = _anyone(), _anyone()
    hers = await store.put(b"same", owner=one, media_type="text/plain")
    his = await store.put(b"same", owner=other, media_type="text/plain")
    if hers.handle == his.handle:
        raise AssertionError("two owners have the same handle")
    await store.delete(hers.handle, owner=one)
    _equal(await fetch_bytes(store, his.handle, owner=other), b"same")


@_promise
async def _a_handle_that_never_was_is_unknown(store: ContentStore) -> None:
    for handle in ("", "nonsense", "img_zzzzzzzzzzzz", "../../etc/passwd", "img_../../passwd", "x" * 10_000, "\udcff"):
        with _raises(UnknownHandle) as caught:
            await fetch_bytes(store, handle, owner="ann")
        if len(str(caught[0])) > 300:
            raise AssertionError("the error repeats a long handle")


@_promise
async def _any_text_may_be_an_owner_or_a_name(store: ContentStore) -> None:
    for text in ("", "../..", "a/b", "ä\n\x00", "\udcff", "x" * 5_000):
        owner = f"{_anyone()}{text}"
        stored = await store.put(b"mine", owner=owner, media_type="text/plain", name=text)
        _equal((await store.metadata(stored.handle, owner=owner)).name, text)
        _equal(await store.list(owner=owner), (stored,))


@_promise
async def _deleted_content_is_unknown_and_can_be_put_again(store: ContentStore) -> None:
    owner = _anyone()
    stored = await store.put(b"hello", owner=owner, media_type="text/plain")
    await store.delete(stored.handle, owner=owner)
    for attempt in (_reading(store), store.metadata, store.delete):
        with _raises(UnknownHandle):
            await attempt(stored.handle, owner=owner)
    _equal(await store.list(owner=owner), ())
    _equal((await store.put(b"hello", owner=owner, media_type="text/plain")).handle, stored.handle)
    _equal(await fetch_bytes(store, stored.handle, owner=owner), b"hello")


@_promise
async def _the_list_begins_with_the_oldest(store: ContentStore) -> None:
    owner = _anyone()
    puts = [await store.put(content, owner=owner, media_type="text/plain") for content in (b"a", b"b", b"c")]
    _equal(await store.list(owner=owner), tuple(puts))


@_promise
async def _a_stream_is_kept_whole(store: ContentStore) -> None:
    owner = _anyone()
    stored = await store.put(_stream(_LARGE, b"", b"!"), owner=owner, media_type="application/zip")
    _equal((stored.size, stored.sha256), (len(_LARGE) + 1, hashlib.sha256(_LARGE + b"!").hexdigest()))
    _same(await fetch_bytes(store, stored.handle, owner=owner), _LARGE + b"!")
    middle = await fetch_bytes(store, stored.handle, owner=owner, start=999_999, end=5_000_001)
    _same(middle, _LARGE[999_999:5_000_001])


@_promise
async def _large_content_comes_in_small_pieces(store: ContentStore) -> None:
    owner = _anyone()
    stored = await store.put(_LARGE, owner=owner, media_type="application/zip")
    async with store.open(stored.handle, owner=owner) as opened:
        _equal(opened.stored, stored)
        chunks = [chunk async for chunk in opened]
    if max(map(len, chunks)) > CHUNK_BYTES:
        raise AssertionError(f"a piece has {max(map(len, chunks)):,} bytes: give at most {CHUNK_BYTES:,} at once")
    _same(b"".join(chunks), _LARGE)


@_promise
async def _reading_may_end_early_and_go_on_side_by_side(store: ContentStore) -> None:
    owner = _anyone()
    stored = await store.put(_LARGE, owner=owner, media_type="application/zip")
    async with store.open(stored.handle, owner=owner) as one, store.open(stored.handle, owner=owner) as other:
        first = await anext(aiter(one))
        _same(first, await anext(aiter(other)))
    async with store.open(stored.handle, owner=owner):
        pass
    _same(await fetch_bytes(store, stored.handle, owner=owner, end=len(first)), first)


@_promise
async def _a_stream_that_breaks_off_leaves_nothing(store: ContentStore) -> None:
    owner, raised = _anyone(), _Interrupted("broken off")
    for before in (0, 1, len(_LARGE)):
        with _raises(_Interrupted) as caught:
            async with aclosing(_stream(_LARGE[:before], failing=raised)) as content:
                await store.put(content, owner=owner, media_type="text/plain")
        if caught[0] is not raised:
            raise AssertionError("what the stream raised has to reach the caller as it is")
        _equal(await store.list(owner=owner), ())
    await _is_not_there(store, owner, _LARGE)


@_promise
async def _a_put_that_is_cancelled_leaves_nothing(store: ContentStore) -> None:
    owner, is_read = _anyone(), anyio.Event()

    async def endless() -> AsyncGenerator[bytes]:
        yield _LARGE
        is_read.set()
        await anyio.sleep_forever()

    async def put() -> None:
        async with aclosing(endless()) as content:
            await store.put(content, owner=owner, media_type="text/plain")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(put)
        await is_read.wait()
        tasks.cancel_scope.cancel()
    _equal(await store.list(owner=owner), ())
    await _is_not_there(store, owner, _LARGE)


async def _is_not_there(store: ContentStore, owner: str, content: bytes) -> None:
    """Fail if interrupted content is left over. Its handle is that of equal content, put and deleted here."""
    stored = await store.put(content, owner=owner, media_type="text/plain")
    await store.delete(stored.handle, owner=owner)
    with _raises(UnknownHandle):
        await store.metadata(stored.handle, owner=owner)


def _anyone() -> str:
    return f"check {secrets.token_hex(8)}"


def _reading(store: ContentStore) -> Callable[..., Awaitable[bytes | Stored | None]]:
    async def read(handle: str, *, owner: str) -> bytes:
        return await fetch_bytes(store, handle, owner=owner)

    return read


async def _stream(*chunks: bytes, failing: Exception | None = None) -> AsyncGenerator[bytes]:
    for chunk in chunks:
        yield chunk
    if failing is not None:
        raise failing


@contextmanager
def _raises(kind: type[Exception]) -> Generator[list[Exception]]:
    caught: list[Exception] = []
    try:
        yield caught
    except kind as error:
        if isinstance(error, ExpiredHandle) and kind is not ExpiredHandle:
            raise AssertionError("it is said to be gone, and never was") from error
        caught.append(error)
    if not caught:
        raise AssertionError(f"{kind.__name__} is not raised")


def _equal(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def _same(found: bytes, expected: bytes) -> None:
    if found != expected:
        raise AssertionError(f"other bytes ({len(found):,}) than were put ({len(expected):,})")

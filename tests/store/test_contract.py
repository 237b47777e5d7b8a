"""What every store promises. A new store gets an entry in STORES and passes all of this."""

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import pytest

from gateway.config.schema import StoreSettings
from gateway.errors import ContentTooLarge, ExpiredHandle, UnknownHandle
from gateway.store import ContentStore, MemoryStore

pytestmark = pytest.mark.anyio


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


MakeStore: TypeAlias = Callable[[StoreSettings, Clock], ContentStore]
STORES: dict[str, MakeStore] = {"memory": lambda settings, clock: MemoryStore(settings, clock=clock)}


@pytest.fixture(params=STORES)
def make(request: pytest.FixtureRequest) -> MakeStore:
    return STORES[request.param]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(make: MakeStore, clock: Clock) -> ContentStore:
    """100 bytes at most, each piece for 60 seconds."""
    return make(StoreSettings(max_bytes=100, expires=60), clock)


async def test_what_was_put_is_read(store, clock):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain", name="a.txt")
    assert await store.read(stored.handle, owner="ann") == b"hello"
    assert await store.metadata(stored.handle, owner="ann") == stored
    assert (stored.media_type, stored.name, stored.size, stored.kind) == ("text/plain", "a.txt", 5, "text")
    assert stored.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert stored.expires_at == clock.now + 60
    assert stored.handle.startswith("txt_")


async def test_content_is_a_resource_and_read_by_its_uri_too(store):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    assert stored.uri == f"content://{stored.handle}"
    assert await store.read(stored.uri, owner="ann") == b"hello"
    assert await store.read(f" {stored.handle.upper()} ", owner="ann") == b"hello"


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 5, b"34"),
        (0, 99, b"0123456789"),
        (10, None, b""),
        (99, 120, b""),
        (5, 3, b""),
        (-5, 2, b"01"),
        (0, -5, b""),
    ],
)
async def test_a_part_is_read_and_clamped(store, start, end, expected):
    stored = await store.put(b"0123456789", owner="ann", media_type="text/plain")
    assert await store.read(stored.handle, owner="ann", start=start, end=end) == expected


async def test_empty_content_is_content(store):
    stored = await store.put(b"", owner="ann", media_type="text/plain")
    assert await store.read(stored.handle, owner="ann") == b""


@pytest.mark.parametrize(
    ("declared", "kept", "kind"),
    [
        ("image/JPG; q=1", "image/jpeg", "image"),
        ("", "application/octet-stream", "other"),
        ("application/pdf", "application/pdf", "document"),
    ],
)
async def test_the_type_is_kept_normalised(store, declared, kept, kind):
    stored = await store.put(b"x", owner="ann", media_type=declared)
    assert (stored.media_type, stored.kind) == (kept, kind)


async def test_equal_bytes_of_one_owner_have_one_handle(store):
    first = await store.put(b"same", owner="ann", media_type="image/png", name="a")
    second = await store.put(b"same", owner="ann", media_type="application/octet-stream", name="b")
    assert (second.handle, second.media_type, second.name) == (first.handle, "image/png", "a")
    assert await store.list(owner="ann") == (second,)


async def test_a_name_is_taken_when_there_was_none(store):
    await store.put(b"same", owner="ann", media_type="image/png")
    assert (await store.put(b"same", owner="ann", media_type="image/png", name="b")).name == "b"


async def test_owners_do_not_see_one_another(store):
    stored = await store.put(b"hers", owner="ann", media_type="text/plain")
    for attempt in (store.read, store.metadata, store.delete):
        with pytest.raises(UnknownHandle) as someone_elses:
            await attempt(stored.handle, owner="bob")
        with pytest.raises(UnknownHandle) as never:
            await attempt("txt_000000000000", owner="bob")
        assert str(someone_elses.value).replace(stored.handle, "txt_000000000000") == str(never.value)
    assert await store.list(owner="bob") == ()
    assert await store.read(stored.handle, owner="ann") == b"hers"


async def test_owners_share_nothing_that_is_equal(store):
    hers = await store.put(b"same", owner="ann", media_type="text/plain")
    his = await store.put(b"same", owner="bob", media_type="text/plain")
    assert hers.handle != his.handle
    await store.delete(hers.handle, owner="ann")
    assert await store.read(his.handle, owner="bob") == b"same"


@pytest.mark.parametrize("handle", ["", "nonsense", "img_zzzzzzzzzzzz", "../../etc/passwd", "x" * 10_000, "\udcff"])
async def test_a_handle_that_never_was_is_unknown(store, handle):
    with pytest.raises(UnknownHandle) as caught:
        await store.read(handle, owner="ann")
    assert len(str(caught.value)) < 300


async def test_deleted_content_is_unknown(store):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    await store.delete(stored.handle, owner="ann")
    with pytest.raises(UnknownHandle):
        await store.read(stored.handle, owner="ann")
    with pytest.raises(UnknownHandle):
        await store.delete(stored.handle, owner="ann")
    assert await store.list(owner="ann") == ()
    assert (await store.put(b"hello", owner="ann", media_type="text/plain")).handle == stored.handle


async def test_content_expires_and_is_remembered_as_expired(store, clock):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    clock.now += 59
    assert await store.read(stored.handle, owner="ann") == b"hello"
    clock.now += 1
    for attempt in (store.read, store.metadata, store.delete):
        with pytest.raises(ExpiredHandle) as caught:
            await attempt(stored.handle, owner="ann")
        assert stored.handle in str(caught.value)
        assert "60 s" in str(caught.value)
    with pytest.raises(UnknownHandle):
        await store.read(stored.handle, owner="bob")
    assert await store.list(owner="ann") == ()


async def test_reading_does_not_renew_and_putting_again_does(store, clock):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    clock.now += 50
    await store.read(stored.handle, owner="ann")
    renewed = await store.put(b"hello", owner="ann", media_type="text/plain")
    assert renewed.expires_at == clock.now + 60
    clock.now += 50
    assert await store.read(stored.handle, owner="ann") == b"hello"
    clock.now += 10
    with pytest.raises(ExpiredHandle):
        await store.read(stored.handle, owner="ann")


async def test_expired_content_that_is_put_again_is_there_again(store, clock):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    clock.now += 100
    assert (await store.put(b"hello", owner="ann", media_type="text/plain")).handle == stored.handle
    assert await store.read(stored.handle, owner="ann") == b"hello"


async def test_expiry_is_per_piece(store, clock):
    first = await store.put(b"first", owner="ann", media_type="text/plain")
    clock.now += 30
    second = await store.put(b"second", owner="ann", media_type="text/plain")
    clock.now += 30
    assert await store.list(owner="ann") == (second,)
    with pytest.raises(ExpiredHandle):
        await store.read(first.handle, owner="ann")


async def test_the_list_begins_with_the_oldest(store, clock):
    puts = [await store.put(content, owner="ann", media_type="text/plain") for content in (b"a", b"b", b"c")]
    await store.put(b"not hers", owner="bob", media_type="text/plain")
    assert await store.list(owner="ann") == tuple(puts)


async def test_the_least_recently_used_is_evicted_first(store):
    first, second = [await store.put(bytes([n]) * 40, owner="ann", media_type="image/png") for n in (1, 2)]
    await store.read(first.handle, owner="ann")
    third = await store.put(bytes([3]) * 40, owner="ann", media_type="image/png")
    with pytest.raises(ExpiredHandle) as caught:
        await store.read(second.handle, owner="ann")
    assert "make room" in str(caught.value)
    for stored in (first, third):
        assert len(await store.read(stored.handle, owner="ann")) == 40


async def test_putting_again_counts_as_use_and_takes_no_room(store):
    first, second = [await store.put(bytes([n]) * 40, owner="ann", media_type="image/png") for n in (1, 2)]
    await store.put(bytes([1]) * 40, owner="ann", media_type="image/png")
    assert len(await store.list(owner="ann")) == 2
    await store.put(bytes([3]) * 40, owner="ann", media_type="image/png")
    await store.read(first.handle, owner="ann")
    with pytest.raises(ExpiredHandle):
        await store.read(second.handle, owner="ann")


async def test_as_much_is_evicted_as_room_is_needed(store):
    puts = [await store.put(bytes([n]) * 10, owner="ann", media_type="image/png") for n in range(10)]
    whole = await store.put(b"w" * 100, owner="ann", media_type="image/png")
    assert await store.list(owner="ann") == (whole,)
    for stored in puts:
        with pytest.raises(ExpiredHandle):
            await store.metadata(stored.handle, owner="ann")


async def test_deleting_makes_room(store):
    first, second = [await store.put(bytes([n]) * 50, owner="ann", media_type="image/png") for n in (1, 2)]
    await store.delete(second.handle, owner="ann")
    await store.put(bytes([3]) * 50, owner="ann", media_type="image/png")
    assert len(await store.read(first.handle, owner="ann")) == 50


async def test_content_larger_than_the_store_is_refused_and_evicts_nothing(store):
    kept = await store.put(b"kept", owner="ann", media_type="text/plain")
    with pytest.raises(ContentTooLarge) as caught:
        await store.put(b"x" * 101, owner="ann", media_type="text/plain")
    assert "101 bytes" in str(caught.value)
    assert "100" in str(caught.value)
    assert await store.list(owner="ann") == (kept,)


async def test_large_content_is_kept_whole(make, clock):
    store = make(StoreSettings(max_bytes=10_000_000), clock)
    content = bytes(range(256)) * 20_000
    stored = await store.put(content, owner="ann", media_type="application/zip")
    assert await store.read(stored.handle, owner="ann") == content
    assert stored.sha256 == hashlib.sha256(content).hexdigest()
    assert await store.read(stored.handle, owner="ann", start=4_999_999, end=5_000_001) == content[4_999_999:5_000_001]

"""What every store promises, on every kind of store; and the bounds that the gateway's own stores keep besides."""

import pytest

from gateway.content.store import ContentStore, fetch_bytes
from gateway.errors import ContentTooLarge, ExpiredHandle, UnknownHandle
from gateway.testing.contract import CHECKS

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(kind) -> ContentStore:
    """100 bytes at most, each piece for 60 seconds."""
    return kind.make(max_bytes=100, expires=60)


@pytest.mark.parametrize("promise", CHECKS)
async def test_a_store_keeps_every_promise(kind, promise):
    await CHECKS[promise](kind.make())


async def test_content_expires_and_is_remembered_as_expired(store, clock):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    assert stored.expires_at == clock.now + 60
    clock.now += 59
    assert await fetch_bytes(store, stored.handle, owner="ann") == b"hello"
    clock.now += 1
    for attempt in (store.metadata, store.delete):
        with pytest.raises(ExpiredHandle) as caught:
            await attempt(stored.handle, owner="ann")
        assert stored.handle in str(caught.value)
        assert "60 s" in str(caught.value)
    with pytest.raises(ExpiredHandle):
        await fetch_bytes(store, stored.handle, owner="ann")
    with pytest.raises(UnknownHandle):
        await fetch_bytes(store, stored.handle, owner="bob")
    assert await store.list(owner="ann") == ()


async def test_reading_does_not_renew_and_putting_again_does(store, clock):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    clock.now += 50
    await fetch_bytes(store, stored.handle, owner="ann")
    renewed = await store.put(b"hello", owner="ann", media_type="text/plain")
    assert renewed.expires_at == clock.now + 60
    clock.now += 50
    assert await fetch_bytes(store, stored.handle, owner="ann") == b"hello"
    clock.now += 10
    with pytest.raises(ExpiredHandle):
        await fetch_bytes(store, stored.handle, owner="ann")


async def test_expired_content_that_is_put_again_is_there_again(store, clock):
    stored = await store.put(b"hello", owner="ann", media_type="text/plain")
    clock.now += 100
    again = await store.put(b"hello", owner="ann", media_type="text/csv", name="n")
    assert (again.handle, again.media_type, again.name) == (stored.handle, "text/csv", "n")
    assert await fetch_bytes(store, stored.handle, owner="ann") == b"hello"


async def test_expiry_is_per_piece(store, clock):
    first = await store.put(b"first", owner="ann", media_type="text/plain")
    clock.now += 30
    second = await store.put(b"second", owner="ann", media_type="text/plain")
    clock.now += 30
    assert await store.list(owner="ann") == (second,)
    with pytest.raises(ExpiredHandle):
        await fetch_bytes(store, first.handle, owner="ann")


async def test_the_least_recently_used_is_evicted_first(store):
    first, second = [await store.put(bytes([n]) * 40, owner="ann", media_type="image/png") for n in (1, 2)]
    await fetch_bytes(store, first.handle, owner="ann")
    third = await store.put(bytes([3]) * 40, owner="ann", media_type="image/png")
    with pytest.raises(ExpiredHandle) as caught:
        await fetch_bytes(store, second.handle, owner="ann")
    assert "make room" in str(caught.value)
    for stored in (first, third):
        assert len(await fetch_bytes(store, stored.handle, owner="ann")) == 40
    assert store.usage == (80, 2)


async def test_putting_again_counts_as_use_and_takes_no_room(store):
    first, second = [await store.put(bytes([n]) * 40, owner="ann", media_type="image/png") for n in (1, 2)]
    await store.put(bytes([1]) * 40, owner="ann", media_type="image/png")
    assert len(await store.list(owner="ann")) == 2
    await store.put(bytes([3]) * 40, owner="ann", media_type="image/png")
    await fetch_bytes(store, first.handle, owner="ann")
    with pytest.raises(ExpiredHandle):
        await fetch_bytes(store, second.handle, owner="ann")


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
    assert len(await fetch_bytes(store, first.handle, owner="ann")) == 50


@pytest.mark.parametrize("streamed", [False, True])
async def test_content_larger_than_the_store_is_refused_and_evicts_nothing(store, streamed):
    async def stream():
        yield b"x" * 60
        yield b"x" * 41

    kept = await store.put(b"kept", owner="ann", media_type="text/plain")
    with pytest.raises(ContentTooLarge) as caught:
        await store.put(stream() if streamed else b"x" * 101, owner="ann", media_type="text/plain")
    assert "101 bytes" in str(caught.value)
    assert "100" in str(caught.value)
    assert await store.list(owner="ann") == (kept,)


async def test_more_than_the_limit_is_not_fetched(store):
    stored = await store.put(b"0123456789", owner="ann", media_type="text/plain")
    assert await fetch_bytes(store, stored.handle, owner="ann", start=2, end=6, limit=4) == b"2345"
    with pytest.raises(ContentTooLarge):
        await fetch_bytes(store, stored.handle, owner="ann", limit=9)


async def test_an_owner_has_a_share_of_its_own(kind):
    store = kind.make(max_bytes=100, max_bytes_per_owner=50)
    his = await store.put(b"h" * 20, owner="bob", media_type="image/png")
    hers = [await store.put(bytes([n]) * 20, owner="ann", media_type="image/png") for n in range(3)]
    assert await store.list(owner="ann") == tuple(hers[1:])
    assert await store.list(owner="bob") == (his,)
    with pytest.raises(ExpiredHandle):
        await store.metadata(hers[0].handle, owner="ann")
    with pytest.raises(ContentTooLarge) as caught:
        await store.put(b"x" * 51, owner="ann", media_type="image/png")
    assert "max_bytes_per_owner" in str(caught.value)


async def test_other_bounds_count_for_what_is_kept_already(kind, clock):
    store = kind.make(max_bytes=100, expires=100)
    puts = [await store.put(bytes([n]) * 10, owner="ann", media_type="image/png") for n in range(4)]
    store.resize(store_settings(kind, max_bytes=35, expires=20))
    last = await store.put(b"l" * 10, owner="ann", media_type="image/png")
    assert [one.handle for one in await store.list(owner="ann")] == [one.handle for one in (*puts[2:], last)]
    clock.now += 20
    assert await store.list(owner="ann") == ()


def store_settings(kind, **settings):
    from gateway.config.store_settings import StoreSettings

    return StoreSettings(url=kind.url, **settings)

import pytest

from gateway.config.store_settings import StoreSettings
from gateway.content.store import MemoryStore, fetch_bytes, lru_quota, memory
from gateway.errors import ExpiredHandle, UnknownHandle

pytestmark = pytest.mark.anyio


async def test_the_same_key_gives_the_same_handles():
    stores = [MemoryStore(StoreSettings(), key=b"for tests") for _ in range(2)]
    handles = {(await store.put(b"same", owner="ann", media_type="text/plain")).handle for store in stores}
    assert len(handles) == 1


async def test_two_stores_give_different_handles():
    stores = [MemoryStore(StoreSettings()) for _ in range(2)]
    handles = {(await store.put(b"same", owner="ann", media_type="text/plain")).handle for store in stores}
    assert len(handles) == 2


async def test_what_is_read_whole_is_not_copied():
    store = MemoryStore(StoreSettings())
    content = bytes(100_000)
    stored = await store.put(content, owner="ann", media_type="image/png")
    assert await fetch_bytes(store, stored.handle, owner="ann") is content


async def test_there_is_a_bound_on_small_pieces_too(monkeypatch):
    monkeypatch.setattr(lru_quota, "MOST_ENTRIES", 3)
    store = MemoryStore(StoreSettings())
    puts = [await store.put(bytes([n]), owner="ann", media_type="image/png") for n in range(5)]
    assert await store.list(owner="ann") == tuple(puts[2:])


async def test_what_is_gone_is_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(memory, "MOST_GONE", 2)
    store = MemoryStore(StoreSettings(max_bytes=1))
    puts = [await store.put(bytes([n]), owner="ann", media_type="image/png") for n in range(4)]
    with pytest.raises(UnknownHandle):
        await fetch_bytes(store, puts[0].handle, owner="ann")
    for stored in puts[1:3]:
        with pytest.raises(ExpiredHandle):
            await fetch_bytes(store, stored.handle, owner="ann")
    assert await fetch_bytes(store, puts[3].handle, owner="ann") == bytes([3])


async def test_other_bounds_count_for_what_is_kept_already():
    now = 0.0
    store = MemoryStore(StoreSettings(max_bytes=100, expires=100), clock=lambda: now)
    puts = [await store.put(bytes([n]) * 10, owner="ann", media_type="image/png") for n in range(4)]
    store.resize(StoreSettings(max_bytes=25, expires=100))
    assert [stored.handle for stored in await store.list(owner="ann")] == [stored.handle for stored in puts[2:]]
    now = 10.0
    store.resize(StoreSettings(max_bytes=25, expires=20))
    fresh = await store.put(b"fresh", owner="ann", media_type="image/png")
    now = 21.0
    assert [stored.handle for stored in await store.list(owner="ann")] == [fresh.handle]

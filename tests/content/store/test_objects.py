"""What a store that outlives the process does besides: restarts, crashes, several gateways, and what is left over."""

import json
import os
import stat
import subprocess
import sys
import time
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.config.store_settings import StoreSettings
from gateway.content.store import fetch_bytes, make_store, open_store
from gateway.content.store.backend import Backend
from gateway.content.store.object_index import LEFT_OVER_SECONDS
from gateway.content.store.objects import ObjectStore
from gateway.errors import ExpiredHandle, StoreUnavailable, UnknownHandle

pytestmark = pytest.mark.anyio

ANN = {"owner": "ann", "media_type": "image/png"}


def files(folder, part):
    """The files below a part of a file store."""
    return sorted(path for path in (folder / part).rglob("*") if path.is_file())


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def make(folder, clock):
    def made(**settings):
        return make_store(StoreSettings(url=folder.as_uri(), **settings), clock=clock)

    return made


async def test_content_outlives_the_process(lasting):
    stored = await lasting.make().put(b"kept", name="a.png", **ANN)
    later = lasting.make()
    assert await later.list(owner="ann") == (stored,)
    assert await fetch_bytes(later, stored.handle, owner="ann") == b"kept"
    assert (await later.put(b"kept", **ANN)).handle == stored.handle


async def test_what_is_kept_is_counted_again_after_a_restart_and_the_bounds_hold(lasting, clock):
    first = lasting.make(max_bytes=100)
    puts = []
    for n in range(4):
        clock.now += 1
        puts.append(await first.put(bytes([n]) * 20, **ANN))
    later = lasting.make(max_bytes=50)
    await later.tidy()
    assert later.usage == (40, 2)
    assert await later.list(owner="ann") == tuple(puts[2:])
    with pytest.raises(ExpiredHandle, match="make room"):
        await later.metadata(puts[0].handle, owner="ann")


async def test_the_last_use_outlives_the_process(lasting, clock):
    first = lasting.make()
    puts = [await first.put(bytes([n]) * 20, **ANN) for n in range(3)]
    clock.now += 1
    await fetch_bytes(first, puts[0].handle, owner="ann")
    await first.close()
    later = lasting.make(max_bytes=40)
    await later.tidy()
    assert {one.handle for one in await later.list(owner="ann")} == {puts[0].handle, puts[2].handle}


async def test_two_gateways_on_one_store_see_what_the_other_keeps_and_removes(lasting):
    one, other = lasting.make(), lasting.make()
    stored = await one.put(b"shared", **ANN)
    assert await fetch_bytes(other, stored.handle, owner="ann") == b"shared"
    assert (await other.put(b"shared", **ANN)).handle == stored.handle
    await other.delete(stored.handle, owner="ann")
    with pytest.raises(UnknownHandle):
        await fetch_bytes(one, stored.handle, owner="ann")
    await one.tidy()
    assert one.usage == (0, 0)


async def test_two_gateways_that_put_and_evict_at_once_leave_nothing_broken(lasting):
    stores = [lasting.make(max_bytes=200) for _ in range(2)]

    async def busy(store):
        for n in range(12):
            await store.put(bytes([n % 5]) * 60, **ANN)
            if n % 4 == 3:
                await store.tidy()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for store in stores:
                tasks.start_soon(busy, store)
    last = lasting.make(max_bytes=200)
    await last.tidy()
    assert last.usage[0] <= 200
    for stored in await last.list(owner="ann"):
        with suppress(ExpiredHandle):  # evicted by one while the other put it again: said, not broken
            assert len(await fetch_bytes(last, stored.handle, owner="ann")) == 60


async def test_expired_content_is_removed_and_its_end_remembered(make, folder, clock):
    store = make(expires=60)
    stored = await store.put(b"kept", **ANN)
    await fetch_bytes(store, stored.handle, owner="ann")
    await store.close()
    clock.now += 60
    later = make(expires=60)
    await later.tidy()
    assert files(folder, "about") == files(folder, "bytes") == []
    with pytest.raises(ExpiredHandle, match="kept for 60 s"):
        await later.metadata(stored.handle, owner="ann")
    await later.tidy()
    assert files(folder, "used") == []


async def test_what_renewed_in_one_gateway_is_not_expired_by_another(make, clock):
    one, other = make(expires=60), make(expires=60)
    stored = await one.put(b"kept", **ANN)
    await other.tidy()
    clock.now += 50
    await one.put(b"kept", **ANN)
    clock.now += 20
    await other.tidy()
    assert await fetch_bytes(other, stored.handle, owner="ann") == b"kept"


async def test_ends_are_forgotten_in_the_end(make, folder, clock):
    store = make(expires=60)
    stored = await store.put(b"kept", **ANN)
    clock.now += 60
    await store.tidy()
    long_ago = time.time() - 8 * 86_400
    for path in files(folder, "gone"):
        os.utime(path, (long_ago, long_ago))
    await store.tidy()
    with pytest.raises(UnknownHandle):
        await store.metadata(stored.handle, owner="ann")


async def test_what_a_killed_gateway_left_behind_is_removed_after_a_while(make, folder):
    store = make()
    stored = await store.put(b"kept", **ANN)
    owner = files(folder, "bytes")[0].parent
    old, young = owner / ("a" * 32), owner / ("b" * 32)
    staged, staging = owner / f"{'c' * 32}#1", owner / f"{'d' * 32}#12"
    for path in (old, young, staged, staging):
        path.write_bytes(b"x")
    long_ago = time.time() - LEFT_OVER_SECONDS - 60
    for path in files(folder, "bytes"):
        if path not in (young, staging):
            os.utime(path, (long_ago, long_ago))
    await store.tidy()
    assert not old.exists()
    assert not staged.exists()
    assert young.exists()
    assert staging.exists()
    assert await fetch_bytes(store, stored.handle, owner="ann") == b"kept"


async def test_a_record_that_cannot_be_read_hides_one_piece_and_costs_no_bytes(make, folder):
    store = make()
    broken, whole = await store.put(b"broken", **ANN), await store.put(b"whole", **ANN)
    record = next(path for path in files(folder, "about") if path.name in broken.handle)
    written = record.read_text()
    bytes_before = files(folder, "bytes")
    for path in bytes_before:
        os.utime(path, (0, 0))
    for garbage in (
        "",
        "{",
        "[]",
        "null",
        json.dumps({"version": 0}),
        written.replace('"object": "', '"object": "../'),
    ):
        record.write_text(garbage)
        with pytest.raises(UnknownHandle):
            await store.metadata(broken.handle, owner="ann")
        assert await store.list(owner="ann") == (whole,)
        await store.tidy()
    assert files(folder, "bytes") == bytes_before
    record.write_text(written)
    assert await fetch_bytes(store, broken.handle, owner="ann") == b"broken"


async def test_content_whose_bytes_are_gone_says_so_and_can_be_put_again(make, folder):
    store = make()
    stored = await store.put(b"kept", **ANN)
    files(folder, "bytes")[0].unlink()
    for _ in range(2):
        with pytest.raises(ExpiredHandle, match="no longer in the store"):
            await fetch_bytes(store, stored.handle, owner="ann")
    assert (await store.put(b"kept", **ANN)).handle == stored.handle
    assert await fetch_bytes(store, stored.handle, owner="ann") == b"kept"


async def test_content_that_was_cut_short_is_not_given_out_as_whole(make, folder):
    store = make()
    stored = await store.put(b"0123456789", **ANN)
    files(folder, "bytes")[0].write_bytes(b"0123")
    with pytest.raises(StoreUnavailable, match="4 bytes"):
        await fetch_bytes(store, stored.handle, owner="ann")
    assert (await store.put(b"0123456789", **ANN)).handle == stored.handle
    assert await fetch_bytes(store, stored.handle, owner="ann") == b"0123456789"


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
async def test_only_its_user_may_read_the_folder_and_the_key(make, folder):
    await make().put(b"kept", **ANN)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "key").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["key"]


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
async def test_nobody_else_reads_content_in_a_folder_that_was_there_before(make, folder):
    folder.mkdir(mode=0o755, exist_ok=True)
    folder.chmod(0o755)
    await make().put(b"kept", **ANN)
    inner = [path for path in folder.iterdir() if path.is_dir()]
    assert inner
    assert {stat.S_IMODE(path.stat().st_mode) for path in inner} == {0o700}


async def test_gateways_that_begin_at_once_have_one_key(lasting):
    handles = set()

    async def put():
        handles.add((await lasting.make().put(b"same", **ANN)).handle)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(put)
    assert len(handles) == 1


async def test_a_key_from_the_configuration_gives_the_same_handles_anywhere(tmp_path):
    key = "sixteen letters and more"
    handles = set()
    for name in ("one", "other"):
        store = make_store(StoreSettings(url=(tmp_path / name).as_uri(), key=key))
        handles.add((await store.put(b"same", **ANN)).handle)
        assert not (tmp_path / name / "key").exists()
    assert len(handles) == 1


@pytest.mark.parametrize("content", ["", "no key", "ab" * 16, "ä" * 64])
async def test_a_damaged_key_is_said_and_not_replaced(make, folder, content):
    folder.mkdir()
    (folder / "key").write_text(content, encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="is not a key"):
        await make().put(b"x", **ANN)
    assert (folder / "key").read_text(encoding="utf-8") == content


async def test_owners_are_not_to_be_read_from_the_names_of_files(make, folder):
    await make().put(b"kept", owner="ann@example.com", media_type="image/png", name="a.png")
    assert not [path for path in folder.rglob("*") if "ann" in path.name or "a.png" in path.name]


async def test_bytes_that_are_kept_already_are_not_kept_twice_whatever_way_they_come(make, folder):
    async def stream():
        yield b"ke"
        yield b"pt"

    store = make()
    await store.put(b"kept", **ANN)
    await store.put(stream(), **ANN)
    await store.put(b"kept", **ANN)
    assert len(files(folder, "bytes")) == 1


async def test_a_stream_that_breaks_off_leaves_no_file(make, folder):
    async def stream():
        yield b"x" * 6_000_000
        raise KeyError("broken off")

    with pytest.raises(KeyError):
        async with aclosing(stream()) as content:
            await make().put(content, **ANN)
    assert files(folder, "") == [folder / "key"]


async def test_a_gateway_that_is_killed_in_the_middle_leaves_nothing_to_be_seen(make, folder):
    """Eight megabytes are on their way when the process is killed."""
    code = f"""
import anyio, sys
from gateway.config.store_settings import StoreSettings
from gateway.content.store import make_store

async def stream():
    for _ in range(8):
        yield bytes(1024 * 1024)
    print("on its way", flush=True)
    await anyio.sleep_forever()

async def main():
    store = make_store(StoreSettings(url={folder.as_uri()!r}))
    kept = await store.put(b"kept", owner="ann", media_type="image/png")
    print(kept.handle, flush=True)
    await store.put(stream(), owner="ann", media_type="image/png")

anyio.run(main)
"""
    process = await anyio.to_thread.run_sync(partial(subprocess.Popen, [sys.executable, "-c", code], stdout=-1))
    with process, anyio.fail_after(60):
        handle, on_its_way = [(await anyio.to_thread.run_sync(process.stdout.readline)).strip() for _ in range(2)]
        process.kill()
    assert on_its_way == b"on its way"
    store: Any = make_store(StoreSettings(url=folder.as_uri()))
    (kept,) = await store.list(owner="ann")
    assert kept.handle == handle.decode()
    staged = [path for path in files(folder, "bytes") if "#" in path.name]
    assert len(staged) == 1
    os.utime(staged[0], (0, 0))
    await store.tidy()
    assert not staged[0].exists()
    assert await fetch_bytes(store, kept.handle, owner="ann") == b"kept"


async def test_a_store_is_tidied_while_it_is_open(make, folder, monkeypatch):
    is_tidy = anyio.Event()

    async def tidy(store, tidied=ObjectStore.tidy):
        await tidied(store)
        is_tidy.set()

    await make().put(b"old", **ANN)
    monkeypatch.setattr(ObjectStore, "tidy", tidy)
    with anyio.fail_after(30):
        async with open_store(StoreSettings(url=folder.as_uri(), expires=1)):
            await is_tidy.wait()
    assert files(folder, "about") == []


async def test_what_the_body_raises_leaves_an_open_store_as_it_is(folder):
    with pytest.raises(KeyError):
        async with open_store(StoreSettings(url=folder.as_uri())):
            raise KeyError("from the body")


async def test_objects_are_listed_in_pages(make, folder):
    store = make()
    await store.put(b"x", **ANN)
    path = files(folder, "about")[0]
    for n in range(1_200):
        (path.parent / f"other-{n}").write_bytes(b"{}")
    backend = Backend(store._backend._place, 10.0)
    assert len(await backend.list("about")) == 1_201
    assert len(await store.list(owner="ann")) == 1

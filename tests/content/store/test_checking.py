"""`gateway.testing.check_store`, which people run on stores of their own."""

import re
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.store_settings import StoreSettings
from gateway.content.store import MemoryStore, Opened
from gateway.testing import check_store

pytestmark = pytest.mark.anyio
PAGE = Path(__file__).resolve().parents[3] / "docs" / "stores.md"


async def test_the_gateway_s_own_store_keeps_its_promises():
    await check_store(lambda: MemoryStore(StoreSettings()))


async def test_the_store_that_the_page_shows_keeps_its_promises(tmp_path):
    code = next(block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "class " in block)
    names: dict = {"__name__": "a_store_of_my_own"}
    exec(compile(code, str(PAGE), "exec"), names)
    store = names["SqliteStore"](tmp_path / "content.db")
    with closing(store.database):
        await check_store(lambda: store)


class Leaky(MemoryStore):
    """Gives everything to everybody, and in one piece."""

    @asynccontextmanager
    async def open(self, handle, *, owner, start=0, end=None):
        entry = next(iter(self._entries.values()), None)

        async def whole():
            yield entry.content if entry else b""

        chunks = whole()
        assert entry is not None
        yield Opened(entry.stored, chunks)
        await chunks.aclose()


async def test_a_store_that_breaks_its_promises_is_told_which():
    with pytest.raises(AssertionError) as caught:
        await check_store(lambda: Leaky(StoreSettings()))
    said = str(caught.value)
    for promise in (
        "owners do not see one another",
        "a part is read and clamped",
        "large content comes in small pieces",
    ):
        assert f"- {promise}: " in said
    assert "the list begins with the oldest" not in said


class Deaf(MemoryStore):
    """Never reads the streams that it is given."""

    async def put(self, content, **known):
        if isinstance(content, bytes):
            return await super().put(content, **known)
        return await anyio.sleep_forever()


async def test_a_store_that_never_reads_is_told_so_and_not_waited_for():
    deaf: Any = partial(Deaf, StoreSettings())
    with anyio.fail_after(60), pytest.raises(AssertionError) as caught:
        await check_store(deaf, patience=0.2)
    assert "- a stream is kept whole: the store was not done within 0.2 s" in str(caught.value)
    assert "- what was put is read" not in str(caught.value)

"""Limits on the size of a list: pages, items and bytes of memory. Items beyond them are left out and reported."""

from collections.abc import Iterable, Mapping
from typing import Any

import anyio.lowlevel

from gateway.core.model.json_size import memory_of

MOST_PAGES = 500
MOST_ITEMS = 20_000

_AT_ONCE = 1024 * 1024
"""Bytes that are counted before other tasks get a turn."""


class Allowance:
    """The allowance for reading one list. `most` is in bytes of memory; None means no limit."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.taken = 0
        self.items: list[dict[str, Any]] = []
        self.cut: str | None = None
        """Why items were left out; None if none were."""
        self._pages = 0
        self._counted = 0

    @property
    def is_over(self) -> bool:
        """Whether the pages are too large even without their items."""
        return self.most is not None and self.taken > self.most

    async def take(self, page: Iterable[dict[str, Any]], about: Mapping[str, Any]) -> bool:
        """Take the items of a page, and count the rest of the page. Return whether another page may follow."""
        self._pages += 1
        self.taken += memory_of(about, self.most)
        for item in page:
            if len(self.items) >= MOST_ITEMS:
                self.cut = f"more than {MOST_ITEMS:,} items"
                return False
            size = memory_of(item, self.most)
            if self.most is not None and self.taken + size > self.most:
                self.cut = "more bytes than limits.list_bytes allows for all its lists together"
                return False
            self.taken += size
            self.items.append(item)
            self._counted += size
            if self._counted > _AT_ONCE:
                self._counted = 0
                await anyio.lowlevel.checkpoint()
        return True

    def follow(self) -> bool:
        """Return whether another page may be requested."""
        if self._pages < MOST_PAGES and len(self.items) < MOST_ITEMS:
            return True
        self.cut = f"more than {MOST_PAGES} pages" if self._pages >= MOST_PAGES else f"more than {MOST_ITEMS:,} items"
        return False

"""Bookkeeping for eviction: sizes per owner and the order of last use decide what makes room. No I/O."""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

from gateway.config.store_settings import StoreSettings

MOST_ENTRIES = 65_536
"""The maximum number of pieces stored: small ones cost more than their bytes."""


Ident = TypeVar("Ident", bound=Hashable)


class Held(NamedTuple):
    """The owner of a stored piece of content, and its size in bytes."""

    owner: str
    size: int


class LruQuota(Generic[Ident]):
    """The stored pieces, in the order of their last use, with the limits that they count against."""

    def __init__(self, entries: Iterable[tuple[Ident, Held]] = ()) -> None:
        """`entries` are ordered from the least recently used to the most recently used."""
        self.size = 0
        self._held: OrderedDict[Ident, Held] = OrderedDict()
        self._owned: Counter[str] = Counter()
        for ident, held in entries:
            self.hold(ident, held)

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, ident: Ident, held: Held) -> None:
        """Add a piece, used just now."""
        self.drop(ident)
        self._held[ident] = held
        self._owned[held.owner] += held.size
        self.size += held.size

    def use(self, ident: Ident) -> None:
        """Mark a piece as just used, if it is stored."""
        if ident in self._held:
            self._held.move_to_end(ident)

    def drop(self, ident: Ident) -> None:
        """Remove a piece, if it is stored."""
        if held := self._held.pop(ident, None):
            self.size -= held.size
            self._owned[held.owner] -= held.size
            if not self._owned[held.owner]:
                del self._owned[held.owner]

    def surplus(self, settings: StoreSettings, more: Held | None = None) -> list[Ident]:
        """Return the ids to evict, the least recently used first, to stay within `settings` after adding `more`."""
        going: dict[Ident, Held] = {}
        if (quota := settings.max_bytes_per_owner) is not None:
            over = {owner: size - quota for owner, size in self._owned.items()}
            if more is not None:
                over[more.owner] = over.get(more.owner, -quota) + more.size
            if any(excess > 0 for excess in over.values()):
                for ident, held in self._held.items():
                    if over[held.owner] > 0:
                        over[held.owner] -= held.size
                        going[ident] = held
        bytes_over = self.size - sum(held.size for held in going.values()) - settings.max_bytes
        pieces_over = len(self._held) - len(going) - MOST_ENTRIES
        if more is not None:
            bytes_over, pieces_over = bytes_over + more.size, pieces_over + 1
        for ident, held in self._held.items():
            if bytes_over <= 0 and pieces_over <= 0:
                break
            if ident not in going:
                going[ident] = held
                bytes_over, pieces_over = bytes_over - held.size, pieces_over - 1
        return list(going)

"""Content that is kept for later, behind handles."""

from gateway.store.content import ContentStore, Stored
from gateway.store.handles import URI_SCHEME, handle_from
from gateway.store.memory import MemoryStore

__all__ = ["URI_SCHEME", "ContentStore", "MemoryStore", "Stored", "handle_from"]

"""Stores that keep content for later, behind handles."""

from gateway.content.store.content import ContentStore, Opened, Stored, fetch_bytes
from gateway.content.store.handles import URI_SCHEME, handle_from
from gateway.content.store.memory import MemoryStore
from gateway.content.store.open_store import KeptStore, make_store, open_store

__all__ = [
    "URI_SCHEME",
    "ContentStore",
    "KeptStore",
    "MemoryStore",
    "Opened",
    "Stored",
    "fetch_bytes",
    "handle_from",
    "make_store",
    "open_store",
]

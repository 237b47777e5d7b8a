"""The revisions of MCP: an enumerated set, never compared as dates. Imports nothing that takes time to load."""

from typing import Literal

Era = Literal["handshake", "modern"]
"""`handshake`: the revisions up to 2025-11-25, opened by `initialize`. `modern`: the revisions without sessions."""

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions of the handshake era, oldest first."""

MODERN_REVISIONS = ("2026-07-28",)
"""The revisions of the modern era: every request carries its own version, identity and capabilities."""

REVISIONS = (*HANDSHAKE_REVISIONS, *MODERN_REVISIONS)
"""All revisions, oldest first."""

NEWEST_HANDSHAKE = HANDSHAKE_REVISIONS[-1]
NEWEST_MODERN = MODERN_REVISIONS[-1]


def at_least(revision: str, other: str) -> bool:
    """Whether `revision` is `other` or newer. An unknown revision counts as the oldest (the cautious answer)."""
    rank = REVISIONS.index(revision) if revision in REVISIONS else 0
    return rank >= REVISIONS.index(other)

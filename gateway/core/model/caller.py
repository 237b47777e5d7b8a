"""Who is calling: what a host told about itself, and how the call reached us."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
"""The protocol revisions, oldest first: an enumerated set, never compared as dates."""

MODERN_REVISIONS = frozenset({"2026-07-28"})
"""The revisions without a handshake: every request carries its own version, identity and capabilities."""


def at_least(revision: str, other: str) -> bool:
    """Whether `revision` is `other` or newer. One that we do not know counts as the oldest (the careful answer)."""
    rank = REVISIONS.index(revision) if revision in REVISIONS else 0
    return rank >= REVISIONS.index(other)


@dataclass(frozen=True)
class Caller:
    """One host, as seen on one request.

    `client_name` and `client_version` are its clientInfo; `user_agent` is of the HTTP request, if any; `profile` was
    chosen explicitly (flag, path, header); `principal` owns what the calls store: the authenticated one, else `local`.
    """

    revision: str = REVISIONS[0]
    client_name: str | None = None
    client_version: str | None = None
    user_agent: str | None = None
    profile: str | None = None
    principal: str = "local"
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_modern(self) -> bool:
        """Whether the host speaks the stateless era (2026-07-28)."""
        return self.revision in MODERN_REVISIONS

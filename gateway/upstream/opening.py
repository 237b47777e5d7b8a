"""Opening the conversation: which era and revision an upstream speaks, and who it says it is.

`initialize` comes first, at the newest handshake revision. A server that answers it with an error may know only the
stateless era: then `server/discover` settles it. An upstream that turned out modern is asked the other way round when
it is connected to again.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)

from gateway.core.model.caller import MODERN_REVISIONS, REVISIONS
from gateway.errors import UpstreamRefused
from gateway.upstream.failures import HttpStatus, NotMcp

Era = Literal["handshake", "modern"]
"""`handshake`: revisions up to 2025-11-25, opened by `initialize`. `modern`: the stateless revisions."""

Ask = Callable[[str, Mapping[str, Any], str | None], Awaitable[dict[str, Any]]]
"""Send a request (method, params, revision to stamp into its headers) and get the raw result."""

NEWEST_HANDSHAKE = next(revision for revision in reversed(REVISIONS) if revision not in MODERN_REVISIONS)
NEWEST_MODERN = next(revision for revision in reversed(REVISIONS) if revision in MODERN_REVISIONS)

Identity = Mapping[str, Any]
"""Name and version of the gateway, as its clientInfo."""


@dataclass(frozen=True)
class Opening:
    """What was agreed when the conversation was opened."""

    era: Era
    revision: str
    server_info: dict[str, Any] | None = None
    capabilities: dict[str, Any] = field(default_factory=dict[str, Any])
    instructions: str | None = None

    def offers(self, feature: str) -> bool:
        """Whether the server declared a capability."""
        return isinstance(self.capabilities.get(feature), dict)

    def announces(self, feature: str) -> bool:
        """Whether it says when the list of this feature changes."""
        return cast("dict[str, Any]", self.capabilities.get(feature) or {}).get("listChanged") is True


def envelope(revision: str, identity: Identity) -> dict[str, Any]:
    """The `_meta` that every request of the stateless era carries. The gateway declares no capabilities (yet)."""
    return {
        PROTOCOL_VERSION_META_KEY: revision,
        CLIENT_INFO_META_KEY: dict(identity),
        CLIENT_CAPABILITIES_META_KEY: {},
    }


async def agree(ask: Ask, identity: Identity, known: Era | None) -> Opening:
    """Agree on an era and a revision. `known` is what the upstream spoke before, if it was connected before.

    Raises the server's answer to `initialize` (UpstreamRefused, HttpStatus) when it speaks neither, NotMcp when its
    answer makes no sense, and whatever else `ask` raises.
    """
    if known == "modern":
        try:
            return await _discover(ask, identity)
        except (UpstreamRefused, HttpStatus, NotMcp):  # another server may have taken its place
            return await _initialize(ask, identity)
    try:
        return await _initialize(ask, identity)
    except (UpstreamRefused, HttpStatus) as refusal:
        if isinstance(refusal, HttpStatus) and not refusal.is_about_the_request:
            raise
        try:
            return await _discover(ask, identity)
        except (UpstreamRefused, HttpStatus):
            raise refusal from None


async def _initialize(ask: Ask, identity: Identity) -> Opening:
    params = {"protocolVersion": NEWEST_HANDSHAKE, "capabilities": {}, "clientInfo": dict(identity)}
    result = await ask("initialize", params, None)
    revision = result.get("protocolVersion")
    if revision not in REVISIONS or revision in MODERN_REVISIONS:
        raise NotMcp(f"answered initialize with protocol version {revision!r}, which the gateway does not speak")
    return Opening(
        "handshake",
        cast("str", revision),
        _object(result.get("serverInfo")),
        _object(result.get("capabilities")) or {},
        _text(result.get("instructions")),
    )


async def _discover(ask: Ask, identity: Identity) -> Opening:
    try:
        return await _discover_at(NEWEST_MODERN, ask, identity)
    except UpstreamRefused as refusal:
        supported = _object(refusal.data) if refusal.code == UNSUPPORTED_PROTOCOL_VERSION else None
        mutual = _newest_mutual(supported.get("supported") if supported else None)
        if mutual in (None, NEWEST_MODERN):
            raise
        return await _discover_at(mutual, ask, identity)


async def _discover_at(revision: str, ask: Ask, identity: Identity) -> Opening:
    result = await ask("server/discover", {"_meta": envelope(revision, identity)}, revision)
    mutual = _newest_mutual(result.get("supportedVersions"))
    if mutual is None:
        raise NotMcp(f"speaks only protocol versions {result.get('supportedVersions')!r}, which the gateway does not")
    meta = _object(result.get("_meta")) or {}
    return Opening(
        "modern",
        mutual,
        _object(meta.get(SERVER_INFO_META_KEY)) or _object(result.get("serverInfo")),
        _object(result.get("capabilities")) or {},
        _text(result.get("instructions")),
    )


def _newest_mutual(offered: object) -> str | None:
    """The newest stateless revision among those offered."""
    known = cast("list[object]", offered) if isinstance(offered, list) else []
    return next((one for one in reversed(REVISIONS) if one in MODERN_REVISIONS and one in known), None)


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

"""Negotiate the era and the revision with an upstream, and learn its identity and capabilities.

The era of the host in front is tried first, so that an upstream that speaks both behaves as it would without a gateway;
the other era follows if the first is refused. A server that ignores unknown requests would cost a long wait, so it is
sent a `ping` along with the request: a response to the ping alone counts as a refusal.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from gateway.core.model.json_values import as_dict, as_list, as_text, is_dict
from gateway.core.model.revisions import HANDSHAKE_REVISIONS, MODERN_REVISIONS, NEWEST_HANDSHAKE, NEWEST_MODERN, Era
from gateway.core.model.wire import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SERVER_INFO,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from gateway.errors import UpstreamRefused
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.transports.causes import HttpStatus, NotMcp

Ask = Callable[[str, Mapping[str, Any], str | None], Awaitable[dict[str, Any]]]
"""Sends a request (method, params, revision for its headers) and returns the raw result."""


PATIENCE = 20.0
"""Seconds for `server/discover`; a ping usually ends the wait earlier. A launcher that may have to install the server
first gets the whole time of its start: earlier requests would be answered late, and out of order."""

GRACE = 0.5
"""Seconds for the response to the request after the response to the ping."""


@dataclass(frozen=True)
class Opening:
    """The outcome of the negotiation."""

    era: Era
    revision: str
    server_info: dict[str, Any] | None = None
    capabilities: dict[str, Any] = field(default_factory=dict[str, Any])
    instructions: str | None = None

    def offers(self, feature: str) -> bool:
        """Whether the server declared a capability."""
        return isinstance(self.capabilities.get(feature), dict)

    def can(self, feature: str, what: str) -> bool:
        """Whether the server declared the member `what` of a capability, such as `subscribe` of `resources`."""
        declared = self.capabilities.get(feature)
        return is_dict(declared) and declared.get(what) is True

    def announces(self, feature: str) -> bool:
        """Whether the server announces changes of the list of this feature."""
        return self.can(feature, "listChanged")


def envelope(revision: str, identity: ClientIdentity) -> dict[str, Any]:
    """Return the `_meta` that every request of the modern era carries."""
    meta: dict[str, Any] = {
        PROTOCOL_VERSION: revision,
        CLIENT_INFO: dict(identity.client_info),
        CLIENT_CAPABILITIES: dict(identity.capabilities),
    }
    return meta if identity.log_level is None else {**meta, LOG_LEVEL: identity.log_level}


async def agree(
    ask: Ask, identity: ClientIdentity, first: Era, patience: float | None = None, newer: tuple[str, ...] = ()
) -> Opening:
    """Agree on an era and a revision. `first` is the era to try first, and `patience` (default `PATIENCE`) the seconds
    for a response to `server/discover`. `newer` are revisions that are spoken besides, oldest first.

    Raises the server's response to `initialize` (UpstreamRefused, HttpStatus) if it speaks neither era, NotMcp if its
    response makes no sense, and whatever else `ask` raises.
    """
    if first == "modern":
        try:
            return await _probe(ask, identity, patience, newer)
        except (UpstreamRefused, NotMcp, TimeoutError):
            return await _initialize(ask, identity)
        except HttpStatus as refusal:
            if not refusal.is_about_the_request:
                raise
            return await _initialize(ask, identity)
    refusal: Exception
    try:
        return await _initialize(ask, identity)
    except (UpstreamRefused, HttpStatus, NotMcp) as error:
        if isinstance(error, HttpStatus) and not error.is_about_the_request:
            raise
        refusal = error
    with suppress(UpstreamRefused, HttpStatus, TimeoutError):
        return await _probe(ask, identity, patience, newer)
    raise refusal


async def _initialize(ask: Ask, identity: ClientIdentity) -> Opening:
    params = {
        "protocolVersion": NEWEST_HANDSHAKE,
        "capabilities": identity.for_handshake,
        "clientInfo": dict(identity.client_info),
    }
    result = await ask("initialize", params, None)
    revision = result.get("protocolVersion")
    if revision not in HANDSHAKE_REVISIONS:
        raise NotMcp(f"answered initialize with protocol version {revision!r}, which the gateway does not speak")
    return Opening(
        "handshake",
        cast("str", revision),
        as_dict(result.get("serverInfo")),
        as_dict(result.get("capabilities")) or {},
        as_text(result.get("instructions")),
    )


async def _probe(ask: Ask, identity: ClientIdentity, patience: float | None, newer: tuple[str, ...]) -> Opening:
    """Send `server/discover`. Raises TimeoutError soon if the server ignores it."""
    opening: Opening | None = None
    refusal: Exception = TimeoutError("server/discover is not answered")

    async def hurry() -> None:
        try:
            await ask("ping", {"_meta": envelope(NEWEST_MODERN, identity)}, NEWEST_MODERN)
        except (UpstreamRefused, HttpStatus, NotMcp):
            return  # the server answers unknown requests, since `ping` does not exist in the modern era
        await anyio.sleep(GRACE)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hurry)
        with anyio.move_on_after(PATIENCE if patience is None else patience):
            try:
                opening = await _discover(ask, identity, newer)
            except (UpstreamRefused, HttpStatus, NotMcp) as error:
                refusal = error
        tasks.cancel_scope.cancel()
    if opening is None:
        raise refusal
    return opening


async def _discover(ask: Ask, identity: ClientIdentity, newer: tuple[str, ...]) -> Opening:
    try:
        return await _discover_at(NEWEST_MODERN, ask, identity, newer)
    except UpstreamRefused as refusal:
        supported = as_dict(refusal.data) if refusal.code == UNSUPPORTED_PROTOCOL_VERSION else None
        mutual = _newest_mutual(supported.get("supported") if supported else None, newer)
        if mutual is None:
            raise
        return await _discover_at(mutual, ask, identity, newer)


async def _discover_at(revision: str, ask: Ask, identity: ClientIdentity, newer: tuple[str, ...]) -> Opening:
    result = await ask("server/discover", {"_meta": envelope(revision, identity)}, revision)
    mutual = _newest_mutual(result.get("supportedVersions"), newer)
    if mutual is None:
        raise NotMcp(f"speaks only protocol versions {result.get('supportedVersions')!r}, which the gateway does not")
    meta = as_dict(result.get("_meta")) or {}
    return Opening(
        "modern",
        mutual,
        as_dict(meta.get(SERVER_INFO)) or as_dict(result.get("serverInfo")),
        as_dict(result.get("capabilities")) or {},
        as_text(result.get("instructions")),
    )


def _newest_mutual(offered: object, newer: tuple[str, ...]) -> str | None:
    """Return the newest known modern revision among those offered."""
    known = as_list(offered)
    return next((one for one in reversed((*MODERN_REVISIONS, *newer)) if one in known), None)

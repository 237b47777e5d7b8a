"""Opening the conversation: which era and revision an upstream speaks, and who it says it is.

The era of the host in front is tried first, so that an upstream that speaks both acts as it would without a gateway
between; the other one follows when it is refused. A server that ignores what it does not know would cost a long wait:
it is sent a `ping` with the question, and one that answers only the ping has answered both.
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
from gateway.upstream.transports.failures import HttpStatus, NotMcp

Ask = Callable[[str, Mapping[str, Any], str | None], Awaitable[dict[str, Any]]]
"""Send a request (method, params, revision to stamp into its headers) and get the raw result."""


PATIENCE = 20.0
"""Seconds for `server/discover`; a ping usually ends the wait earlier. A launcher that may have to install the server
first is given as long as its start may take: what is asked before that is answered late, and out of order."""

GRACE = 0.5
"""Seconds, after the ping was answered, for the answer that was asked for before."""


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

    def can(self, feature: str, what: str) -> bool:
        """Whether the server declared `what` of a capability, as `subscribe` of `resources`."""
        declared = self.capabilities.get(feature)
        return is_dict(declared) and declared.get(what) is True

    def announces(self, feature: str) -> bool:
        """Whether it says when the list of this feature changes."""
        return self.can(feature, "listChanged")


def envelope(revision: str, identity: ClientIdentity) -> dict[str, Any]:
    """The `_meta` that every request of the stateless era carries."""
    meta: dict[str, Any] = {
        PROTOCOL_VERSION: revision,
        CLIENT_INFO: dict(identity.client_info),
        CLIENT_CAPABILITIES: dict(identity.capabilities),
    }
    return meta if identity.log_level is None else {**meta, LOG_LEVEL: identity.log_level}


async def agree(ask: Ask, identity: ClientIdentity, first: Era, patience: float | None = None) -> Opening:
    """Agree on an era and a revision; `first` is the era that is tried first, `patience` (else `PATIENCE`) the seconds
    for an answer to `server/discover`.

    Raises the server's answer to `initialize` (UpstreamRefused, HttpStatus) when it speaks neither, NotMcp when its
    answer makes no sense, and whatever else `ask` raises.
    """
    if first == "modern":
        try:
            return await _probe(ask, identity, patience)
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
        return await _probe(ask, identity, patience)
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


async def _probe(ask: Ask, identity: ClientIdentity, patience: float | None) -> Opening:
    """`server/discover`, waited for no longer than a server that ignores it deserves (then: TimeoutError)."""
    opening: Opening | None = None
    refusal: Exception = TimeoutError("server/discover is not answered")

    async def hurry() -> None:
        try:
            await ask("ping", {"_meta": envelope(NEWEST_MODERN, identity)}, NEWEST_MODERN)
        except (UpstreamRefused, HttpStatus, NotMcp):
            return  # it answers what it does not serve, as no `ping` is served in the stateless era
        await anyio.sleep(GRACE)
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hurry)
        with anyio.move_on_after(PATIENCE if patience is None else patience):
            try:
                opening = await _discover(ask, identity)
            except (UpstreamRefused, HttpStatus, NotMcp) as error:
                refusal = error
        tasks.cancel_scope.cancel()
    if opening is None:
        raise refusal
    return opening


async def _discover(ask: Ask, identity: ClientIdentity) -> Opening:
    try:
        return await _discover_at(NEWEST_MODERN, ask, identity)
    except UpstreamRefused as refusal:
        supported = as_dict(refusal.data) if refusal.code == UNSUPPORTED_PROTOCOL_VERSION else None
        mutual = _newest_mutual(supported.get("supported") if supported else None)
        if mutual is None:
            raise
        return await _discover_at(mutual, ask, identity)


async def _discover_at(revision: str, ask: Ask, identity: ClientIdentity) -> Opening:
    result = await ask("server/discover", {"_meta": envelope(revision, identity)}, revision)
    mutual = _newest_mutual(result.get("supportedVersions"))
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


def _newest_mutual(offered: object) -> str | None:
    """The newest stateless revision among those offered."""
    known = as_list(offered)
    return next((one for one in reversed(MODERN_REVISIONS) if one in known), None)

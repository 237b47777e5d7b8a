"""Clients: the hosts that ask to use the gateway, registered by themselves or described by a document at a URL."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import OAuthClientInformationFull

from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_list, as_text
from gateway.errors import StateUnavailable
from gateway.routing.replica_port import SharedLimit, SharedUse
from gateway.serving.authorization.approvals import digest
from gateway.serving.authorization.redirect_uris import fault_of

SECRET_METHODS = ("client_secret_post", "client_secret_basic")
"""How a client with a secret may send it."""

_MOST_REDIRECT_URIS = 20
_LONGEST_NAME = 80
UNAPPROVED_SECONDS = 24 * 3_600.0
"""Seconds after which a client is forgotten that nobody has approved."""
UNUSED_SECONDS = 90 * 24 * 3_600.0
"""The same after its last approval, once that has ended: hosts keep their ids, and come back with them."""
_REGISTRATIONS_PER_MINUTE = 20
_EVERYBODYS = SharedLimit("registrations_per_minute", _REGISTRATIONS_PER_MINUTE, ("everybody", ""))


@dataclass(frozen=True)
class Client:
    """A host, as it describes itself."""

    id: str
    name: str
    redirect_uris: Sequence[str]
    secret: str | None = None
    """The SHA-256 of its secret; None for a public client."""
    documented: bool = False
    """Whether its id is the URL of a document about it: then the host of that URL is certain."""

    def for_sdk(self) -> OAuthClientInformationFull:
        """Return the client for the SDK's handlers, which compare what a form has in `client_secret` with a hash."""
        return OAuthClientInformationFull.model_validate(
            {
                "client_id": self.id,
                "client_secret": self.secret,
                "redirect_uris": list(self.redirect_uris),
                "token_endpoint_auth_method": "none" if self.secret is None else "client_secret_post",
            }
        )


def described_client(client_id: str, metadata: Mapping[str, Any], *, documented: bool = False) -> Client:
    """Return the client with this metadata (RFC 7591, section 2).

    Raises:
        RegistrationError: it cannot be used here.
    """
    uris = [uri for uri in as_list(metadata.get("redirect_uris")) if isinstance(uri, str)]
    if not 1 <= len(uris) <= _MOST_REDIRECT_URIS:
        raise RegistrationError("invalid_redirect_uri", f"1 to {_MOST_REDIRECT_URIS} redirect_uris are needed")
    for place, uri in enumerate(uris, start=1):
        if fault := fault_of(uri):
            raise RegistrationError("invalid_redirect_uri", f"redirect URI {place} {fault}")
    grants = metadata.get("grant_types")
    if grants is not None and "authorization_code" not in as_list(grants):
        raise RegistrationError("invalid_client_metadata", "grant_types must have authorization_code")
    name = plain(as_text(metadata.get("client_name")) or "", _LONGEST_NAME)
    return Client(client_id, name, tuple(uris), as_text(metadata.get("client_secret")), documented)


class RegistrationRate:
    """Bounds how many clients register within a minute, from wherever.

    `shared` returns what counts them for several replicas together, if there are any.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        shared: Callable[[], SharedUse | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._shared = shared
        self._left = float(_REGISTRATIONS_PER_MINUTE)
        self._at = clock()

    async def wait(self) -> int:
        """Count one more, and return 0; or return the seconds until it is allowed."""
        return self._wait_here() or await self._wait_everywhere()

    async def _wait_everywhere(self) -> int:
        if (shared := self._shared()) is None:
            return 0
        try:
            exceeded = await shared.begin([_EVERYBODYS])
        except StateUnavailable:  # which the log has said, once
            return 0
        return 0 if exceeded is None else max(1, math.ceil(exceeded.seconds))

    def _wait_here(self) -> int:
        now = self._clock()
        earned = (now - self._at) * _REGISTRATIONS_PER_MINUTE / 60
        self._left, self._at = min(float(_REGISTRATIONS_PER_MINUTE), self._left + earned), now
        if self._left < 1:
            return max(1, round(60 / _REGISTRATIONS_PER_MINUTE))
        self._left -= 1
        return 0


def stored_client(info: OAuthClientInformationFull) -> Client:
    """Return the client that the SDK's handler registers, with its secret hashed. Raises RegistrationError."""
    given = info.model_dump(mode="json", include={"client_name", "redirect_uris", "grant_types"})
    secret = None if info.client_secret is None else digest(info.client_secret)
    return described_client(info.client_id, {**given, "client_secret": secret})

"""The public keys of an issuer (RFC 7517): fetched when they are needed, and again from time to time."""

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import jwt

from gateway.core.model.json_values import as_list, is_object
from gateway.errors import FetchFailed, GatewayError

_FRESH = 600.0
"""Seconds after which keys are fetched again, so that one that the issuer has withdrawn is forgotten."""
_KEPT = 86_400.0
"""Seconds for which the last keys count while the issuer cannot be asked."""
_PAUSE = 60.0
"""Seconds between two requests, however many tokens have unknown keys."""
_FIRST_PAUSE = 10.0
"""The same while there are no keys at all."""

_MOST_KEYS = 100
_SMALLEST_RSA = 2_048
_KINDS: Mapping[str, tuple[str, str | None]] = {
    "RS256": ("RSA", None),
    "ES256": ("EC", "P-256"),
    "EdDSA": ("OKP", "Ed25519"),
}
"""The type of key, and its curve, by algorithm."""

_Keys = Mapping[tuple[str | None, str], list[jwt.PyJWK]]


class SigningKeys:
    """The keys of one issuer. `read` reads its key set, and raises FetchFailed or FetchRefused."""

    def __init__(
        self, read: Callable[[], Awaitable[Mapping[str, Any]]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._keys: _Keys = {}
        self._stale_at = self._gone_at = self._next_at = float("-inf")
        self._failure: GatewayError = FetchFailed("the keys have not been read yet")
        self._reading = anyio.Lock()

    async def find(self, key_id: str | None, algorithm: str) -> jwt.PyJWK | None:
        """Return the key of a token; None if the issuer has no such key, or several and the token names none.

        Raises:
            FetchFailed, FetchRefused: no keys are known, and the issuer cannot be asked at present.
        """
        # An issuer may be slow: while one token waits for newer keys, others whose key is known do not.
        is_waited_for = self._reading.locked() and self._is_known(key_id, algorithm)
        if self._is_due(key_id, algorithm) and not is_waited_for:
            async with self._reading:
                if self._is_due(key_id, algorithm):  # nobody else has asked meanwhile
                    await self._refresh()
        if self._clock() >= self._gone_at:
            raise self._failure
        found = self._keys.get((key_id, algorithm), [])
        return found[0] if len(found) == 1 else None

    def _is_due(self, key_id: str | None, algorithm: str) -> bool:
        now = self._clock()
        return now >= self._next_at and (now >= self._stale_at or (key_id, algorithm) not in self._keys)

    def _is_known(self, key_id: str | None, algorithm: str) -> bool:
        return self._clock() < self._gone_at and (key_id, algorithm) in self._keys

    async def _refresh(self) -> None:
        try:
            self._keys = _by_id(await self._read())
        except GatewayError as error:
            self._failure = error
            self._next_at = self._clock() + (_PAUSE if self._keys else _FIRST_PAUSE)
            return
        now = self._clock()
        self._stale_at, self._gone_at, self._next_at = now + _FRESH, now + _KEPT, now + _PAUSE


def _by_id(document: Mapping[str, Any]) -> _Keys:
    """Return the usable keys by id and algorithm; those that a token without an id may mean are under None."""
    found: dict[tuple[str | None, str], list[jwt.PyJWK]] = {}
    for entry in as_list(document.get("keys"))[:_MOST_KEYS]:
        for algorithm in _KINDS if is_object(entry) else ():
            if (key := _key(entry, algorithm)) is not None:
                for key_id in {key.key_id, None}:
                    found.setdefault((key_id, algorithm), []).append(key)
    return found


def _key(entry: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """Return a key, if it is a public one for signatures of this algorithm."""
    kind, curve = _KINDS[algorithm]
    if entry.get("kty") != kind or (curve is not None and entry.get("crv") != curve):
        return None
    if entry.get("alg", algorithm) != algorithm or entry.get("use", "sig") != "sig" or "d" in entry:
        return None
    if not isinstance(entry.get("kid"), str | None):
        return None
    try:
        key = jwt.PyJWK(dict(entry), algorithm)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return None if kind == "RSA" and key.key.key_size < _SMALLEST_RSA else key

"""Browsers that may use the console: let in once by a key, or by the token of an admin, and then known by a cookie."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeVar

KEY_SECONDS = 600.0
"""Seconds for which a key that was not used yet lets somebody in."""
IDLE_SECONDS = 12 * 3_600.0
"""Seconds without a request after which a browser has to be let in again."""

_MOST = 64

_KeptT = TypeVar("_KeptT")


class _Session(NamedTuple):
    """When it was used last, and the header that says why it may be, which is asked about again each time."""

    used: float
    authorization: str


class ConsoleSessions:
    """Keys and sessions, at most 64 of each: the oldest make room for new ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._keys: OrderedDict[str, float] = OrderedDict()
        self._used: OrderedDict[str, None] = OrderedDict()
        """Digests of the keys that have let somebody in."""
        self._sessions: OrderedDict[str, _Session] = OrderedDict()

    def new_key(self) -> str:
        """Return a key that lets one browser in, once, within ten minutes."""
        key = secrets.token_urlsafe(32)
        _add(self._keys, key, self._clock())
        return key

    def redeem(self, key: str) -> str | None:
        """Return a new session for a key, which is used up by this; None if it is unknown, used or too old."""
        made = self._keys.get(key)
        if made is None or self._clock() - made > KEY_SECONDS:
            return None
        del self._keys[key]
        _add(self._used, _digest(key), None)
        return self.open()

    def why_refused(self, key: str) -> str:
        """Say what is wrong with a key that lets nobody in, for the log."""
        if _digest(key) in self._used:
            return "a one-time address of the console that was used before (`mcp-gateway console` makes a new one)"
        if key in self._keys:
            return "a one-time address of the console that is too old (`mcp-gateway console` makes a new one)"
        return "an address of the console that is not known, or no longer"

    def open(self, authorization: str = "") -> str:
        """Return a new session, for somebody who is known to be an admin: by this header, or by a key."""
        session = secrets.token_urlsafe(32)
        _add(self._sessions, session, _Session(self._clock(), authorization))
        return session

    def authorization_of(self, session: str) -> str | None:
        """Return what the session was opened with, empty for a key; None if there is no such session any more."""
        known = self._sessions.get(session)
        if known is None:
            return None
        if self._clock() - known.used > IDLE_SECONDS:
            self.close(session)
            return None
        self._sessions[session] = known._replace(used=self._clock())
        self._sessions.move_to_end(session)
        return known.authorization

    def close(self, session: str) -> None:
        """End a session."""
        self._sessions.pop(session, None)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def form_token(session: str) -> str:
    """Return what only pages of this session know, so that no other site can send their forms."""
    return hmac.digest(session.encode(), b"forms of the console", "sha256").hex()


def _add(kept: OrderedDict[str, _KeptT], key: str, value: _KeptT) -> None:
    kept[key] = value
    while len(kept) > _MOST:
        kept.popitem(last=False)

"""Passphrases of people: hashed with scrypt, and slow to guess."""

import base64
import hashlib
import hmac
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

from gateway.errors import StateUnavailable
from gateway.routing.replica_port import SharedUse

_COST = 1 << 15
"""scrypt's N: 32 MiB and about 80 ms for each attempt."""
_BLOCK = 8
_SALT_BYTES, _HASH_BYTES = 16, 32

_FREE = 5
_LONGEST_PAUSE = 60.0
_FORGOTTEN = 3_600.0
_SHARED = "wrong passphrase for"
_REMEMBERED = 100_000
"""Names. Trying that many takes longer than an hour, so nobody makes the gateway forget one by trying others."""

SHORTEST = 12
"""Minimum characters of a passphrase. One that can be guessed opens everything to the internet."""


def hash_passphrase(passphrase: str) -> str:
    """Return the hash of a passphrase in the form of the configuration."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return f"scrypt:{_COST}:{_text(salt)}:{_text(_derived(passphrase, salt, _COST))}"


def is_passphrase(given: str, hashed: str | None) -> bool:
    """Whether `given` is the passphrase with this hash. It takes as long without a hash: names are not given away."""
    _, cost, salt, wanted = (hashed or _NOBODYS).split(":")
    found = _text(_derived(given, _bytes(salt), int(cost)))
    return hmac.compare_digest(found, wanted) and hashed is not None


def _derived(passphrase: str, salt: bytes, cost: int) -> bytes:
    memory = 128 * _BLOCK * cost + (1 << 20)
    given = passphrase.encode("utf-8", "replace")
    return hashlib.scrypt(given, salt=salt, n=cost, r=_BLOCK, p=1, maxmem=memory, dklen=_HASH_BYTES)


def _text(given: bytes) -> str:
    return base64.urlsafe_b64encode(given).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


_NOBODYS = f"scrypt:{_COST}:{_text(bytes(_SALT_BYTES))}:{_text(bytes(_HASH_BYTES))}"


class Attempts:
    """Counts failed attempts to log in by name: after a few, each has to wait longer, up to a minute.

    They are counted by name and not by address: behind a proxy all have the same address, and an attacker has many.
    `shared` returns what counts them for several replicas together, if there are any.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        shared: Callable[[], SharedUse | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._shared = shared
        self._failed: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, name: str) -> int:
        """Return the seconds until the next attempt with this name is allowed; 0 for now."""
        count, at = self._failed.get(name, (0, 0.0))
        pause = min(_LONGEST_PAUSE, 2.0 ** (count - _FREE)) if count >= _FREE else 0.0
        return max(0, math.ceil(at + pause - self._clock()))

    def failed(self, name: str) -> None:
        """Count a failed attempt. Call this before the passphrase is checked: attempts at once must not escape it."""
        now = self._clock()
        count, at = self._failed.pop(name, (0, now))
        self._failed[name] = (count + 1 if now - at < _FORGOTTEN else 1, now)
        if len(self._failed) > _REMEMBERED:
            self._failed.popitem(last=False)

    async def tell(self, name: str) -> None:
        """Count an attempt that has failed at all replicas, and let those that others have seen count here too."""
        if (shared := self._shared()) is None:
            return
        try:
            everywhere = await shared.repeated((_SHARED, name), _FORGOTTEN)
        except StateUnavailable:  # which the log has said, once
            return
        count, at = self._failed.get(name, (0, self._clock()))
        self._failed[name] = (max(count, everywhere), at)

    def succeeded(self, name: str) -> None:
        """Forget the failed attempts with this name."""
        self._failed.pop(name, None)

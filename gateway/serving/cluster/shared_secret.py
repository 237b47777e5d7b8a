"""The secret that the replicas of a cluster share, made by the first of them, and the keys that are made of it."""

import hmac
import secrets

from gateway.errors import StateUnavailable
from gateway.serving.cluster.keys import SECRET
from gateway.serving.databases.shared_records import SharedRecords

_BYTES = 32


class SharedSecret:
    """Until Redis can be reached, the secret is this replica's own."""

    def __init__(self) -> None:
        self._value = secrets.token_bytes(_BYTES)

    def key(self, purpose: str) -> bytes:
        """Return the key for one purpose."""
        return hmac.digest(self._value, purpose.encode(), "sha256")

    async def agree(self, connection: SharedRecords) -> None:
        """Use the secret of the others, or give them this one if they have none: they have come later, or forgot it."""
        try:
            async with connection.reached() as redis:
                if not await redis.set(SECRET, self._value.hex(), nx=True):
                    self._value = _read(await redis.get(SECRET))
        except StateUnavailable:
            return


def _read(text: str) -> bytes:
    value = bytes.fromhex(text)
    if len(value) != _BYTES:
        raise ValueError("the secret has another length")
    return value

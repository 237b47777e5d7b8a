"""Bytes that arrive in parts, however small these are."""

_MOST_PARTS = 1_000
"""Parts beyond which they are joined: one of two bytes takes dozens in memory."""


class Parts:
    """Parts of what will be one, with `between` between them. Each byte is copied twice at most."""

    def __init__(self, between: bytes = b"") -> None:
        self._between = between
        self._parts: list[bytes] = []
        self._joined = 0

    def append(self, part: bytes) -> None:
        """Add a part at the end."""
        self._parts.append(part)
        if len(self._parts) - self._joined >= _MOST_PARTS:
            self._parts[self._joined :] = [self._between.join(self._parts[self._joined :])]
            self._joined += 1

    def take(self) -> bytes:
        """Return the whole, and begin again."""
        whole = self._between.join(self._parts)
        self._parts, self._joined = [], 0
        return whole

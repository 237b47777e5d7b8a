"""What a script prints: sent in pieces, up to a limit."""

from collections.abc import Callable
from time import monotonic

_PIECE = 4_096
_SECONDS = 0.2


class Printed:
    """Gathers what a script prints, for at most `_SECONDS`, and gives it to `send`."""

    def __init__(self, send: Callable[[str], None], limit: int) -> None:
        self._send = send
        self._left = limit
        self._pieces: list[str] = []
        self._gathered = 0
        self._sent_at = monotonic()
        self.is_too_much = False

    def __call__(self, stream: str, text: str) -> None:
        """Called by the interpreter. What this raises ends the script."""
        kept = text[: max(0, self._left)]
        self._pieces.append(kept)
        self._gathered += len(kept)
        self._left -= len(text.encode("utf-8", "replace"))
        if self._left < 0:
            self.is_too_much = True
            raise MemoryError("too much printed")
        if self._gathered >= _PIECE or monotonic() - self._sent_at >= _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send what is gathered."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._gathered = 0
        self._sent_at = monotonic()
        if text:
            self._send(text)

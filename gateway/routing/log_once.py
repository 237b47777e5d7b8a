"""What somebody should look at, logged once each."""

import logging
from collections.abc import Iterable

logger = logging.getLogger(__name__)

_AT_ONCE = 50
"""How many problems of one catalogue are logged one by one."""
_REMEMBERED = 5_000
"""How many logged problems are kept in mind, so as not to log them again."""


class Problems:
    """Problems of one kind of thing, each logged the first time that it is met."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def report(self, texts: Iterable[str], about: str) -> None:
        """Log those that are new, `about` before each."""
        if len(self._reported) > _REMEMBERED:
            self._reported.clear()
        fresh = [text for text in dict.fromkeys(texts) if text not in self._reported][:_AT_ONCE]
        for text in fresh:
            logger.warning("%s: %s", about, text)
        self._reported.update(fresh)

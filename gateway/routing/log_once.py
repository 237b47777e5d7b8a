"""Log each problem only once."""

import logging
from collections.abc import Iterable

logger = logging.getLogger(__name__)

_AT_ONCE = 50
"""Maximum number of problems of one catalogue that are logged one by one."""
_REMEMBERED = 5_000
"""Maximum number of logged problems remembered in order not to log them again."""


class Problems:
    """Logs each problem the first time that it is reported."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def report(self, texts: Iterable[str], about: str) -> None:
        """Log the new ones among these problems, each prefixed with `about`."""
        if len(self._reported) > _REMEMBERED:
            self._reported.clear()
        fresh = [text for text in dict.fromkeys(texts) if text not in self._reported][:_AT_ONCE]
        for text in fresh:
            logger.warning("%s: %s", about, text)
        self._reported.update(fresh)

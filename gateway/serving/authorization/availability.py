"""Whether a database can be used: said once when it cannot, and once when it can again."""

import logging

from gateway.errors import StateUnavailable

logger = logging.getLogger(__name__)


class Availability:
    """That of the state of the authorization server."""

    def __init__(self) -> None:
        self._is_away = False

    def lost(self, why: str) -> StateUnavailable:
        """Note that it cannot be used, and return the error for whoever needs it."""
        if not self._is_away:
            logger.error("the state of the authorization server cannot be used: %s", why)
        self._is_away = True
        return StateUnavailable("logins cannot be checked at present", remedy="see the log")

    def found(self) -> None:
        """Note that it can be used."""
        if self._is_away:
            self._is_away = False
            logger.info("the state of the authorization server can be used again")

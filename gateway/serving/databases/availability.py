"""Whether a database can be used: said once when it cannot, and once when it can again."""

import logging

from gateway.errors import StateUnavailable

logger = logging.getLogger(__name__)


class Availability:
    """That of one database. `what` is kept in it; without it, `refused` is what cannot be done."""

    def __init__(
        self,
        what: str = "the state of the authorization server",
        refused: str = "logins cannot be checked at present",
    ) -> None:
        self._what = what
        self._refused = refused
        self.is_away = False

    def lost(self, why: str) -> StateUnavailable:
        """Note that it cannot be used, and return the error for whoever needs it."""
        if not self.is_away:
            logger.error("%s cannot be used: %s", self._what, why)
        self.is_away = True
        return self.refusal("try again in a moment; the log says why")

    def refusal(self, remedy: str) -> StateUnavailable:
        """Return the error for whoever needs it now."""
        return StateUnavailable(self._refused, remedy=remedy)

    def found(self) -> None:
        """Note that it can be used."""
        if self.is_away:
            self.is_away = False
            logger.info("%s can be used again", self._what)

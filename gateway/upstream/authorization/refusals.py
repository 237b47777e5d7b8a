"""The failure of anything on the way to a token."""


class Refused(Exception):
    """An authorization server cannot be used, or refused; the message says why, without the upstream's name.

    `error` is the server's error code (RFC 6749, section 5.2), if it sent one; `remedy` what to do, if that is known;
    `is_passing` says whether it may work later, so that nothing has to be forgotten because of it.
    """

    def __init__(
        self, message: str, *, error: str | None = None, remedy: str | None = None, is_passing: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error = error
        self.remedy = remedy
        self.is_passing = is_passing

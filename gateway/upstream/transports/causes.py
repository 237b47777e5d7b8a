"""The exceptions with which connections to upstreams end, and processes too; `failures.py` says what each means."""

from collections.abc import Iterable, Mapping, Sequence

from gateway.config.logins import Wants, wanted_login
from gateway.errors import FailureCode
from gateway.upstream.remedies import ANOTHER_REQUEST_MAY_DO
from gateway.upstream.transports.printed import Hint

_STATUS: Mapping[int, tuple[FailureCode, str]] = {
    401: (FailureCode.UNAUTHORIZED, "it requires authentication"),
    403: (FailureCode.FORBIDDEN, "it refuses this caller"),
    404: (FailureCode.NOT_FOUND, "there is no MCP server at this address"),
    405: (FailureCode.METHOD_NOT_ALLOWED, "this address does not accept MCP messages"),
    407: (FailureCode.PROXY_UNAUTHORIZED, "a proxy on the way wants credentials"),
    508: (FailureCode.OWN_UPSTREAM, "it is this gateway itself, or leads back to it"),
    429: (FailureCode.TOO_MANY_REQUESTS, "it received too many requests"),
    **dict.fromkeys((400, 406, 415, 422), (FailureCode.REQUEST_REFUSED, "it does not accept the request")),
}


_OTHER_STATUS = FailureCode.HTTP_ERROR, "it does not accept the request"


_SERVER_ERROR = FailureCode.SERVER_ERROR, "a failure of its own"


class HttpStatus(Exception):
    """An HTTP error response without a JSON-RPC error in it."""

    def __init__(self, status: int, challenges: Iterable[str] = ()) -> None:
        """`challenges` are the WWW-Authenticate headers of the response."""
        super().__init__(f"HTTP {status}")
        self.status = status
        self.wants: Wants | None = wanted_login(challenges)

    @property
    def is_about_the_request(self) -> bool:
        """Whether another kind of request may succeed: the address exists and accepts this caller."""
        return self.meaning[0] in ANOTHER_REQUEST_MAY_DO

    @property
    def meaning(self) -> tuple[FailureCode, str]:
        """The code of the failure, and its meaning in words."""
        return _STATUS.get(self.status, _SERVER_ERROR if self.status >= 500 else _OTHER_STATUS)


class SessionExpired(Exception):
    """The upstream no longer knows the HTTP session (404 for a request that named it)."""


class MessageTooLarge(Exception):
    """The upstream sent a message of more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"over {limit} bytes")
        self.limit = limit


class TooManyValues(Exception):
    """The upstream sent a message of more than `MOST_VALUES` values, which is not parsed."""


class NotMcp(Exception):
    """The upstream sent something that is not MCP; the message describes it, as in `answered ...`."""


class ConnectionEnded(Exception):
    """The connection ended; the message says how, as in `closed its event stream`."""


class ProcessEnded(Exception):
    """The process ended or closed its output; `how` describes it, as in `exited with code 1`, `hint` is its output.

    `last` are the last lines of its stderr, fit to be shown.
    """

    def __init__(self, how: str, hint: Hint | None, last: Sequence[str] = ()) -> None:
        super().__init__(f"{how}: {hint.text}" if hint else how)
        self.hint = hint
        self.last = tuple(last)


class Stopping(Exception):
    """The gateway itself is ending the connection."""


class Resting(Exception):
    """The upstream was idle for `seconds`, and is stopped until it is needed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"idle for {seconds:g} s")
        self.seconds = seconds


class Vacated(Exception):
    """The host with state in the upstream no longer has it, for the reason in the message: the upstream is restarted,
    so that no other host gets the state.
    """


class LoginChanged(Vacated):
    """A login was given or ended: the connections are opened again."""


class OverMemory(Exception):
    """The upstream used more memory than allowed, and is stopped until it is needed."""

    def __init__(self, used: str, limit: str) -> None:
        super().__init__(f"used {used} of memory, more than its limit of {limit} (limits.memory), and was stopped")


class TooMuchWaiting(Exception):
    """The upstream does not read its input, or the responses to its requests; the message says how much is waiting."""


class Retired(Exception):
    """The configuration was changed, and no longer contains this connection."""


class NoAnswer(Exception):
    """The upstream was not ready within its start limit: the seconds, its output, and the limit's name."""

    def __init__(self, seconds: float, hint: Hint | None, key: str = "timeout.start") -> None:
        super().__init__(hint.text if hint else "")
        self.seconds = seconds
        self.hint = hint
        self.key = key

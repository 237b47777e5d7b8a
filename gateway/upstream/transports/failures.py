"""Explain failures between the gateway and an upstream: SDK, transport and system errors in one table.

Exceptions arrive as they were raised: nested in groups (a transport's task group), or chained (a refused connection
below an HTTP client's error). They are flattened, and the first row of `TABLE` that matches one of them counts. Rows
refer to exceptions by qualified names, so that nothing heavy is imported to explain that a command does not exist.
"""

import errno
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.config.logins import Wants, login_command, sends_credentials, wanted_login
from gateway.config.schema import UpstreamSettings
from gateway.core.wording import size_words
from gateway.errors import (
    UpstreamError,
    UpstreamGarbage,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from gateway.upstream.transports.redaction import Secrets, origin_of


class HttpStatus(Exception):
    """An HTTP error response without a JSON-RPC error in it."""

    def __init__(self, status: int, challenges: Iterable[str] = ()) -> None:
        """`challenges` are the WWW-Authenticate headers of the response."""
        super().__init__(f"HTTP {status}")
        self.status = status
        self.wants: Wants | None = wanted_login(challenges)

    @property
    def is_about_the_request(self) -> bool:
        """Whether another kind of request may succeed: the address exists, and accepts this caller."""
        return self.status in (400, 404, 405, 406, 415, 422)


class SessionExpired(Exception):
    """The upstream no longer knows the HTTP session (404 for a request that named it)."""


class MessageTooLarge(Exception):
    """The upstream sent a message of more than `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"over {limit} bytes")
        self.limit = limit


class NotMcp(Exception):
    """The upstream sent something that is not MCP; the message describes it, as in `answered ...`."""


class ConnectionEnded(Exception):
    """The connection or the process ended; the message says how, as in `exited with code 1: ...`."""


class Stopping(Exception):
    """The gateway itself ends the connection."""


class Resting(Exception):
    """The upstream was idle for `seconds`, and is stopped until it is needed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"idle for {seconds:g} s")
        self.seconds = seconds


class Vacated(Exception):
    """The host with state in the upstream is gone: the upstream is restarted, so that no other host gets the state."""


class OverMemory(Exception):
    """The upstream used more memory than it may, and is stopped until it is needed."""

    def __init__(self, used: str, limit: str) -> None:
        super().__init__(f"used {used} of memory, more than its limit of {limit} (limits.memory), and was stopped")


class TooMuchWaiting(Exception):
    """The upstream does not read its input, or not the responses to its requests; the message says how much waits."""


class Retired(Exception):
    """The configuration was changed, and no longer contains this connection."""


class NoAnswer(Exception):
    """The upstream was not ready within its start limit; with the seconds, its output, and the limit's name."""

    def __init__(self, seconds: float, hint: str | None, key: str = "timeout.start") -> None:
        super().__init__(hint or "")
        self.seconds = seconds
        self.hint = hint
        self.key = key


@dataclass(frozen=True)
class Subject:
    """The upstream that a failure is about: its name, its settings, and the secrets in them."""

    name: str
    settings: UpstreamSettings
    secrets: Secrets

    @property
    def place(self) -> str:
        """The command, or the origin of the URL."""
        if self.settings.url is not None:
            return origin_of(self.settings.url)
        return repr(self.settings.command)


@dataclass(frozen=True)
class Failure:
    """One explained failure: the type of error for a running call, what happened, and what to do about it."""

    kind: type[UpstreamError]
    words: str
    remedy: str | None = None

    @property
    def cause(self) -> str:
        """The words and the remedy, for the state of an upstream."""
        return f"{self.words} ({self.remedy})" if self.remedy else self.words

    def error(self, upstream: str, doing: str | None = None) -> UpstreamError:
        """Return the error to raise; `doing` is the method that was running, if any."""
        words = f"{self.words}, while {doing} was running" if doing else self.words
        return self.kind(upstream, words, remedy=self.remedy)


@dataclass(frozen=True)
class _Row:
    exception: str
    kind: type[UpstreamError]
    words: str | Callable[[Exception, Subject], str]
    remedy: str | Callable[[Exception, Subject], str | None] | None = None
    only: Callable[[Exception], bool] = lambda _: True


_STATUS: dict[int, tuple[str, str | None]] = {
    401: ("HTTP 401: it requires authentication", 'set a token: headers = { Authorization = "Bearer ..." }'),
    403: ("HTTP 403: it denies access", "check the token in headers, and its permissions"),
    404: ("HTTP 404: there is no MCP server at this address", "check the path of the url"),
    405: ("HTTP 405: this address does not take MCP messages", "check the path of the url, and transport"),
    407: ("HTTP 407: a proxy requires credentials", "check HTTP_PROXY and HTTPS_PROXY"),
    429: ("HTTP 429: it was asked too often", "wait, or ask its operator for a higher limit"),
}


def _status_words(exception: Exception, subject: Subject) -> str:
    if not isinstance(exception, HttpStatus):
        return "answered with an error"
    if exception.status == 401 and (said := _unauthorised(exception.wants, subject)) is not None:
        return f"answered HTTP 401: {said[0]}"
    words = "a failure of its own" if exception.status >= 500 else "it does not take the request"
    return f"answered {_STATUS.get(exception.status, (f'HTTP {exception.status}: {words}', None))[0]}"


def _status_remedy(exception: Exception, subject: Subject) -> str | None:
    if not isinstance(exception, HttpStatus):
        return None
    if exception.status == 401 and (said := _unauthorised(exception.wants, subject)) is not None:
        return said[1]
    return _STATUS.get(exception.status, ("", None))[1]


def _unauthorised(wants: Wants | None, subject: Subject) -> tuple[str, str] | None:
    """Return the words and remedy for a 401; None if it does not say what it wants and no credentials were sent."""
    login = f"mcp-remote can log in: {login_command(subject.name, subject.settings.url or '', replace=True)}"
    if sends_credentials(subject.settings.headers):
        remedy = "get a new token for headers" + (f"; or, without one, {login}" if wants == "login" else "")
        return "it does not accept the credentials in headers", remedy
    match wants:
        case "login":
            return "it wants a login (OAuth), which the gateway cannot give by itself", login
        case "token":
            remedy = f'set a token: headers = {{ Authorization = "Bearer ..." }}; or {login}'
            return "it wants a token, or a login (OAuth)", remedy
        case None:
            return None


def _limit_words(exception: Exception, subject: Subject) -> str:
    limit = exception.limit if isinstance(exception, MessageTooLarge) else subject.settings.max_message_bytes
    return f"sent a message of more than {size_words(limit)}"


def _no_answer_words(exception: Exception, _: Subject) -> str:
    seconds = exception.seconds if isinstance(exception, NoAnswer) else 0
    hint = exception.hint if isinstance(exception, NoAnswer) else None
    return f"was not ready within {round(seconds, 1):g} s" + (f"; {hint}" if hint else "")


def _no_answer_remedy(exception: Exception, _: Subject) -> str:
    return f"raise {exception.key if isinstance(exception, NoAnswer) else 'timeout.start'} if it is only slow"


def _said(exception: Exception, subject: Subject) -> str:
    return subject.secrets.cause(str(exception), 600)


def _missing_words(_: Exception, subject: Subject) -> str:
    settings = subject.settings
    if settings.cwd is not None and not Path(settings.cwd).is_dir():
        return f"the folder {str(settings.cwd)!r} (cwd) does not exist"
    if settings.command is not None and shutil.which(settings.command, path=settings.env.get("PATH")):
        return f"the interpreter that {subject.place} names in its first line was not found"
    return f"the command {subject.place} was not found"


def _missing_remedy(_: Exception, subject: Subject) -> str:
    if subject.settings.cwd is not None and not Path(subject.settings.cwd).is_dir():
        return "make it, or change cwd"
    return "install it, check PATH, or give its absolute path"


def _system_words(exception: Exception, subject: Subject) -> str:
    reason = exception.strerror if isinstance(exception, OSError) and exception.strerror else type(exception).__name__
    return f"{subject.place}: {subject.secrets.cause(reason)}"


def _is_not_runnable(exception: Exception) -> bool:
    return isinstance(exception, OSError) and exception.errno == errno.ENOEXEC


def _tls_words(exception: Exception, subject: Subject) -> str:
    reason = getattr(exception, "verify_message", None) or getattr(exception, "reason", None) or "no details"
    return f"no secure connection to {subject.place}: {subject.secrets.cause(str(reason))}"


def _exceeded(exception: Exception) -> bool:
    return "exceeded" in str(exception)


_CHECK_URL = "check that the server runs, and the url"
_MAX = "raise max_message_bytes if this is expected"

TABLE: tuple[_Row, ...] = (
    # Failures found by the gateway's own transports: the most specific, so they come first.
    _Row("gateway.Stopping", UpstreamUnavailable, "is being stopped"),
    _Row("gateway.Retired", UpstreamUnavailable, "was changed in the configuration, or taken out of it", "try again"),
    _Row("gateway.MessageTooLarge", UpstreamGarbage, _limit_words, _MAX),
    _Row("gateway.SessionExpired", UpstreamLost, "its session expired, or the server was restarted"),
    _Row(
        "gateway.Resting",
        UpstreamUnavailable,
        lambda exception, _: f"sleeps: it was not called for {getattr(exception, 'seconds', 0):g} s",
        "the next call wakes it up",
    ),
    _Row("gateway.Vacated", UpstreamUnavailable, "is being restarted: the host that used it is gone"),
    _Row(
        "gateway.OverMemory",
        UpstreamLost,
        _said,
        "the next call starts it again: ask it for less at once, or raise limits.memory",
    ),
    _Row(
        "gateway.TooMuchWaiting",
        UpstreamLost,
        _said,
        "it is started again; report this to the developers of the server",
    ),
    _Row("gateway.HttpStatus", UpstreamUnavailable, _status_words, _status_remedy),
    _Row("gateway.ConnectionEnded", UpstreamLost, _said),
    _Row("gateway.NotMcp", UpstreamGarbage, _said),
    _Row("gateway.NoAnswer", UpstreamTimeout, _no_answer_words, _no_answer_remedy),
    # Starting a process.
    _Row("builtins.FileNotFoundError", UpstreamUnavailable, _missing_words, _missing_remedy),
    _Row(
        "builtins.PermissionError",
        UpstreamUnavailable,
        lambda _, subject: f"{subject.place} may not be run",
        "make it executable, and check who owns it",
    ),
    _Row(
        "builtins.NotADirectoryError",
        UpstreamUnavailable,
        lambda _, subject: f"a part of the path {subject.place}, or of cwd, is not a folder",
        "check command and cwd",
    ),
    _Row(
        "builtins.OSError",
        UpstreamUnavailable,
        lambda _, subject: f"{subject.place} is not a program that this system can run",
        "begin the script with a #! line, or start its interpreter as the command",
        only=_is_not_runnable,
    ),
    # Connecting over HTTP.
    _Row(
        "builtins.ConnectionRefusedError",
        UpstreamLost,
        lambda _, subject: f"connection refused by {subject.place}",
        _CHECK_URL,
    ),
    _Row(
        "socket.gaierror",
        UpstreamLost,
        lambda _, subject: f"the host name of {subject.place} was not found",
        "check the url, and the name service",
    ),
    _Row(
        "ssl.SSLCertVerificationError",
        UpstreamUnavailable,
        _tls_words,
        "if its certificate is from your own authority, set SSL_CERT_FILE",
    ),
    _Row("ssl.SSLError", UpstreamLost, _tls_words, "check whether the url should begin with http:// or https://"),
    _Row(
        "httpx2.ConnectTimeout",
        UpstreamLost,
        lambda _, subject: f"no connection to {subject.place} in time",
        _CHECK_URL,
    ),
    _Row("httpx2.TimeoutException", UpstreamTimeout, lambda _, subject: f"{subject.place} did not answer in time"),
    _Row("httpx2.ProxyError", UpstreamUnavailable, "the proxy refused the connection", "check HTTP_PROXY and NO_PROXY"),
    _Row("httpx2.ConnectError", UpstreamLost, lambda _, subject: f"no connection to {subject.place}", _CHECK_URL),
    _Row("httpx2.SSEError", UpstreamGarbage, _limit_words, _MAX, only=_exceeded),
    _Row("httpx2.SSEError", UpstreamGarbage, "answered with something that is not an event stream", "check the url"),
    _Row(
        "httpx2.LocalProtocolError", UpstreamUnavailable, "a request cannot be written", "check the values in headers"
    ),
    _Row("httpx2.DecodingError", UpstreamGarbage, "answered with compressed content that cannot be read"),
    _Row("httpx2.TransportError", UpstreamLost, lambda _, subject: f"{subject.place} broke the connection"),
    _Row("httpx2.InvalidURL", UpstreamUnavailable, "its url cannot be used", "check the url"),
    # The protocol.
    _Row("mcp.MCPError", UpstreamRefused, _said),
    _Row("builtins.TimeoutError", UpstreamTimeout, lambda _, subject: f"{subject.place} did not answer in time"),
    _Row("builtins.OSError", UpstreamLost, _system_words),
)


def failure_of(exception: BaseException, subject: Subject) -> Failure:
    """Return the failure that an exception, or a group or chain of exceptions, means for this upstream."""
    found = list(_flat(exception))
    for one in found:
        if isinstance(one, UpstreamRefused):
            return Failure(UpstreamRefused, f"answered with error {one.code}: {one.wire_message}")
        if isinstance(one, UpstreamError):  # already ours
            return Failure(type(one), one.message.removeprefix(f"upstream {subject.name!r}: "), one.remedy)
    for row in TABLE:
        for one in found:
            if row.exception in _names(one) and row.only(one):
                words = row.words if isinstance(row.words, str) else row.words(one, subject)
                remedy = row.remedy(one, subject) if callable(row.remedy) else row.remedy
                return Failure(row.kind, words, remedy)
    first = found[0] if found else exception
    return Failure(UpstreamLost, subject.secrets.cause(f"{type(first).__name__}: {first}"))


def startup(failures: Sequence[Failure], subject: Subject) -> Failure:
    """Return why an upstream could not be connected to, from the failures of the transports in the order tried."""
    words = [subject.secrets.cause(failure.words, 600) for failure in failures]
    tried = words[0] if len(set(words)) == 1 else f"{words[0]}; over the older SSE transport: {'; '.join(words[1:])}"
    return Failure(UpstreamUnavailable, tried, failures[0].remedy)


def _flat(exception: BaseException) -> Iterator[Exception]:
    """Yield the exceptions in a group and along each chain, outermost first, each once."""
    seen: set[int] = set()
    waiting: list[BaseException] = [exception]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, BaseExceptionGroup):
            waiting = [*one.exceptions, *waiting]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            continue
        if isinstance(one, Exception):
            yield one
        # Suppressed contexts too: that is how the HTTP client hides a refused connection under its own error.
        if (beneath := one.__cause__ or one.__context__) is not None:
            waiting.append(beneath)


def _names(exception: Exception) -> set[str]:
    return {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(exception).__mro__}

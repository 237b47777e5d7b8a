"""Classify errors between the gateway and an upstream: one table from SDK, transport and system errors to `Failure`.

Exceptions arrive as they were raised: nested in groups (a transport's task group), or chained (a refused connection
below an HTTP client's error). They are flattened, and the first row of `TABLE` that matches one of them counts. Rows
refer to exceptions by qualified names, so that nothing heavy is imported to explain that a command does not exist.
"""

import errno
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gateway.config.logins import Wants, sends_credentials
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import size_words
from gateway.core.model.json_text import MOST_VALUES
from gateway.errors import (
    Failure,
    FailureCode,
    GatewayError,
    UpstreamError,
    UpstreamGarbage,
    UpstreamLost,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from gateway.upstream.authorization.ports import TokenSource
from gateway.upstream.remedies import FailedUpstream, brief_remedy
from gateway.upstream.transports.causes import HttpStatus, MessageTooLarge, NoAnswer, ProcessEnded, Resting
from gateway.upstream.transports.printed import Hint
from gateway.upstream.transports.redaction import Secrets, origin_of


@dataclass(frozen=True)
class Subject:
    """The upstream that a failure is about: its name, its settings, and the secrets in them."""

    name: str
    settings: UpstreamSettings
    secrets: Secrets
    tokens: TokenSource | None = None
    """The tokens that connections send; None if they have no use for any."""
    newer: tuple[str, ...] = ()
    """The revisions after the newest one that are spoken with it."""
    nested: dict[str, str] = field(default_factory=dict[str, str], compare=False)
    """What its lists last had that nests too deeply and is withheld, by method: one sentence for each list."""

    @property
    def place(self) -> str:
        """The command, or the origin of the URL."""
        if self.settings.replay is not None:
            return f"the recording {self.settings.replay}"
        if self.settings.endpoint is not None:
            return origin_of(self.settings.endpoint)
        return repr(self.settings.command)


class _Said(NamedTuple):
    """An exception's meaning for an upstream; `{place}` in the message is the upstream's command or origin."""

    code: FailureCode
    message: str
    details: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class _Row:
    exception: str
    kind: type[UpstreamError]
    said: _Said | Callable[[Exception, Subject], _Said]
    only: Callable[[Exception], bool] = lambda _: True


def _status(exception: Exception, subject: Subject) -> _Said:
    assert isinstance(exception, HttpStatus)
    code, meaning = exception.meaning
    if code is FailureCode.UNAUTHORIZED:
        return _unauthorized(exception.wants, subject, meaning)
    return _Said(code, f"answered HTTP {exception.status}: {meaning}")


def _unauthorized(wants: Wants | None, subject: Subject, meaning: str) -> _Said:
    if sends_credentials(subject.settings.headers):
        meaning = "it does not accept the credentials in headers"
    elif wants == "login":
        meaning = "it wants a login (OAuth)"
    elif wants == "token":
        meaning = "it wants a token, or a login (OAuth)"
    return _Said(FailureCode.UNAUTHORIZED, f"answered HTTP 401: {meaning}", {"wants": wants} if wants else {})


def _too_large(exception: Exception, subject: Subject) -> _Said:
    limit = exception.limit if isinstance(exception, MessageTooLarge) else subject.settings.max_message_bytes
    return _Said(FailureCode.MESSAGE_TOO_LARGE, f"sent a message of more than {size_words(limit)}")


def _no_answer(exception: Exception, _: Subject) -> _Said:
    assert isinstance(exception, NoAnswer)
    hint = exception.hint
    message = f"was not ready within {round(exception.seconds, 1):g} s" + (f"; {hint.text}" if hint else "")
    code, details = FailureCode.START_TIMEOUT, {"limit": exception.key}
    if hint and hint.code is FailureCode.NOT_MCP_ON_STDOUT:  # other lines do not explain silence
        code, details = hint.code, {**details, **hint.details}
    elif hint and "serves" in hint.details:
        details = {**details, **hint.details}
    return _Said(code, message, details)


def _process_ended(exception: Exception, subject: Subject) -> _Said:
    assert isinstance(exception, ProcessEnded)
    hint = exception.hint or Hint("")
    # The message has a single line already.
    details = {**hint.details, "stderr": "\n".join(exception.last)} if len(exception.last) > 1 else hint.details
    return _Said(hint.code or FailureCode.EXITED, _quoted(exception, subject), details)


def _in_its_words(code: FailureCode) -> Callable[[Exception, Subject], _Said]:
    """Use the exception's message as the failure's message."""
    return lambda exception, subject: _Said(code, _quoted(exception, subject))


def _quoted(exception: Exception, subject: Subject) -> str:
    return subject.secrets.cause(str(exception), 600)


def _asleep(exception: Exception, _: Subject) -> _Said:
    assert isinstance(exception, Resting)
    return _Said(FailureCode.ASLEEP, f"sleeps: it was not called for {exception.seconds:g} s")


def _missing(exception: Exception, subject: Subject) -> _Said:
    settings = subject.settings
    if settings.command is None:  # a file that the HTTP client needs, such as the one that SSL_CERT_FILE names
        return _system_error(exception, subject)
    if settings.cwd is not None and not Path(settings.cwd).is_dir():
        return _Said(FailureCode.FOLDER_NOT_FOUND, f"the folder {str(settings.cwd)!r} (cwd) does not exist")
    if shutil.which(settings.command, path=settings.env.get("PATH")):
        message = f"the interpreter that {subject.place} names in its first line was not found"
        return _Said(FailureCode.INTERPRETER_NOT_FOUND, message)
    return _Said(FailureCode.COMMAND_NOT_FOUND, f"the command {subject.place} was not found")


def _system_error(exception: Exception, subject: Subject) -> _Said:
    reason = exception.strerror if isinstance(exception, OSError) and exception.strerror else type(exception).__name__
    return _Said(FailureCode.SYSTEM_ERROR, f"{subject.place}: {subject.secrets.cause(reason)}")


def _is_not_runnable(exception: Exception) -> bool:
    return isinstance(exception, OSError) and exception.errno == errno.ENOEXEC


def _insecure(code: FailureCode) -> Callable[[Exception, Subject], _Said]:
    def said(exception: Exception, subject: Subject) -> _Said:
        reason = getattr(exception, "verify_message", None) or getattr(exception, "reason", None) or "no details"
        return _Said(code, f"no secure connection to {subject.place}: {subject.secrets.cause(str(reason))}")

    return said


def _unusable_document(exception: Exception, subject: Subject) -> _Said:
    assert isinstance(exception, GatewayError)
    details = {"remedy": subject.secrets.cause(exception.remedy)} if exception.remedy else {}
    return _Said(FailureCode.DOCUMENT_UNUSABLE, subject.secrets.cause(exception.message, 600), details)


def _exceeded(exception: Exception) -> bool:
    return "exceeded" in str(exception)  # the HTTP client's own words


_TIMED_OUT = _Said(FailureCode.TIMED_OUT, "{place} did not answer in time")

TABLE: tuple[_Row, ...] = (
    # Raised by the gateway's own transports: the most specific, so first.
    _Row("gateway.Stopping", UpstreamUnavailable, _Said(FailureCode.STOPPING, "is being stopped")),
    _Row(
        "gateway.Retired",
        UpstreamUnavailable,
        _Said(FailureCode.RECONFIGURED, "was changed in the configuration, or taken out of it"),
    ),
    _Row("gateway.MessageTooLarge", UpstreamGarbage, _too_large),
    _Row(
        "gateway.TooManyValues",
        UpstreamGarbage,
        _Said(FailureCode.TOO_MANY_VALUES, f"sent a message of more than {MOST_VALUES:,} values"),
    ),
    _Row(
        "gateway.SessionExpired",
        UpstreamLost,
        _Said(FailureCode.SESSION_EXPIRED, "its session expired, or the server was restarted"),
    ),
    _Row("gateway.Resting", UpstreamUnavailable, _asleep),
    _Row(
        "gateway.LoginChanged",
        UpstreamUnavailable,
        _Said(FailureCode.RECONFIGURED, "is being connected with another login"),
    ),
    _Row(
        "gateway.Vacated",
        UpstreamUnavailable,
        lambda exception, _: _Said(FailureCode.VACATED, f"is being restarted: {exception}"),
    ),
    _Row("gateway.OverMemory", UpstreamLost, _in_its_words(FailureCode.MEMORY_EXCEEDED)),
    _Row("gateway.TooMuchWaiting", UpstreamLost, _in_its_words(FailureCode.TOO_MUCH_WAITING)),
    _Row("gateway.HttpStatus", UpstreamUnavailable, _status),
    _Row("gateway.ProcessEnded", UpstreamLost, _process_ended),
    _Row("gateway.ConnectionEnded", UpstreamLost, _in_its_words(FailureCode.CONNECTION_LOST)),
    _Row("gateway.DocumentUnusable", UpstreamUnavailable, _unusable_document),
    _Row("gateway.NotMcp", UpstreamGarbage, _in_its_words(FailureCode.NOT_MCP)),
    _Row("gateway.NoAnswer", UpstreamTimeout, _no_answer),
    # Starting a process.
    _Row("builtins.FileNotFoundError", UpstreamUnavailable, _missing),
    _Row("builtins.PermissionError", UpstreamUnavailable, _Said(FailureCode.NOT_EXECUTABLE, "{place} may not be run")),
    _Row(
        "builtins.NotADirectoryError",
        UpstreamUnavailable,
        _Said(FailureCode.NOT_A_FOLDER, "a part of the path {place}, or of cwd, is not a folder"),
    ),
    _Row(
        "builtins.OSError",
        UpstreamUnavailable,
        _Said(FailureCode.NOT_A_PROGRAM, "{place} is not a program that this system can run"),
        only=_is_not_runnable,
    ),
    # Connecting over HTTP.
    _Row(
        "builtins.ConnectionRefusedError",
        UpstreamLost,
        _Said(FailureCode.CONNECTION_REFUSED, "connection refused by {place}"),
    ),
    _Row("socket.gaierror", UpstreamLost, _Said(FailureCode.HOST_NOT_FOUND, "the host name of {place} was not found")),
    _Row("ssl.SSLCertVerificationError", UpstreamUnavailable, _insecure(FailureCode.CERTIFICATE_REJECTED)),
    _Row("ssl.SSLError", UpstreamLost, _insecure(FailureCode.TLS_FAILED)),
    _Row("httpx2.ConnectTimeout", UpstreamLost, _Said(FailureCode.CONNECT_TIMEOUT, "no connection to {place} in time")),
    _Row("httpx2.TimeoutException", UpstreamTimeout, _TIMED_OUT),
    _Row("httpx2.ProxyError", UpstreamUnavailable, _Said(FailureCode.PROXY_REFUSED, "the proxy on the way refused")),
    _Row("httpx2.ConnectError", UpstreamLost, _Said(FailureCode.NO_CONNECTION, "no connection to {place}")),
    _Row("httpx2.SSEError", UpstreamGarbage, _too_large, only=_exceeded),
    _Row(
        "httpx2.SSEError",
        UpstreamGarbage,
        _Said(FailureCode.NOT_AN_EVENT_STREAM, "answered with something that is not an event stream"),
    ),
    _Row(
        "httpx2.LocalProtocolError",
        UpstreamUnavailable,
        _Said(FailureCode.INVALID_HEADERS, "a request cannot be written"),
    ),
    _Row(
        "httpx2.DecodingError",
        UpstreamGarbage,
        _Said(FailureCode.NOT_MCP, "answered with compressed content that cannot be read"),
    ),
    _Row("httpx2.TransportError", UpstreamLost, _Said(FailureCode.CONNECTION_LOST, "{place} broke the connection")),
    _Row("httpx2.InvalidURL", UpstreamUnavailable, _Said(FailureCode.INVALID_URL, "its url cannot be used")),
    # The protocol.
    _Row("mcp.MCPError", UpstreamUnavailable, _in_its_words(FailureCode.REFUSED)),
    _Row("builtins.TimeoutError", UpstreamTimeout, _TIMED_OUT),
    _Row("builtins.OSError", UpstreamLost, _system_error),
)


def failure_of(exception: BaseException, subject: Subject) -> Failure:
    """Return the failure that an exception, or a group or chain of exceptions, means for this upstream."""
    found = list(_flat(exception))
    for one in found:
        if isinstance(one, UpstreamError):
            return one.failure
    for row in TABLE:
        for one in found:
            if row.exception in _names(one) and row.only(one):
                return _failure(row, one, subject)
    first = found[0] if found else exception
    return Failure(UpstreamLost, FailureCode.UNKNOWN, subject.secrets.cause(f"{type(first).__name__}: {first}"))


def _failure(row: _Row, exception: Exception, subject: Subject) -> Failure:
    if callable(row.said):
        code, message, details = row.said(exception, subject)
    else:
        code, message, details = row.said
        message = message.format(place=subject.place)
    remedy = brief_remedy(code, FailedUpstream(subject.name, subject.settings, details))
    return Failure(row.kind, code, message, remedy, details)


_SPECIFIC = (FailureCode.LOGIN_REQUIRED, FailureCode.UNAUTHORIZED, FailureCode.FORBIDDEN, FailureCode.NOT_FOUND)
"""Failures that say more than that a transport is not supported at the address, the most specific first."""


def startup(failures: Sequence[Failure], subject: Subject) -> Failure:
    """Return the most specific of `failures`, which has one for each transport that was tried, in order."""
    met = [subject.secrets.cause(failure.message, 600) for failure in failures]
    message = met[0] if len(set(met)) == 1 else f"{met[0]}; over the older SSE transport: {'; '.join(met[1:])}"
    telling = (failure for code in _SPECIFIC for failure in failures if failure.code is code)
    chosen = next(telling, failures[0])
    kind = chosen.kind if issubclass(chosen.kind, UpstreamUnavailable) else UpstreamUnavailable
    return chosen._replace(kind=kind, message=message)


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

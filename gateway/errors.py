"""Every error that the gateway raises on purpose.

    GatewayError
    ├── ConfigError              mcp-gateway.toml or a command line that cannot be used
    │   ├── ConfigFileMissing
    │   ├── ConfigFileUnreadable
    │   ├── PortInUse            another program listens there
    │   └── ConfigMalformed      neither TOML nor JSON
    ├── ProfileError             a profile that does not exist or does not hold together
    ├── InvalidRequest           a host asked for something malformed
    │   ├── UnknownMethod
    │   ├── UnknownTool
    │   ├── UnknownResource
    │   ├── UnknownSkill
    │   ├── UnknownPrompt
    │   ├── UnknownToolset
    │   ├── FileRefused          a file cannot be sent or fetched as asked
    │   └── UnknownTask
    ├── OutputUnavailable        a result cannot be given in a form that the host has chosen
    ├── TooManyCalls             the caller's limits allow no more for now
    ├── Overloaded               the gateway can take no more for now
    ├── AuditUnavailable         the audit trail cannot be written
    ├── NotAllowed               a rule forbids a call, or its user has declined it
    │   └── ApprovalNeeded       its user has not approved it yet
    ├── UpstreamError            an upstream failed
    │   ├── UpstreamUnavailable  starting, stopped, disabled or failed
    │   │   ├── LoginRequired    wants a login, which a person has to give
    │   │   └── LoginFailed      its authorization server cannot be used, or refused a login
    │   ├── UpstreamBusy         too many calls wait for it already
    │   ├── UpstreamTimeout      took longer than its limit
    │   ├── UpstreamLost         the process or the connection ended during the call
    │   ├── UpstreamGarbage      answered with something that is not MCP
    │   └── UpstreamRefused      answered with a JSON-RPC error of its own
    ├── ScopeMissing             a call needs scopes that the token of its host lacks
    ├── HostRefused              a host did not answer an upstream's request
    ├── ToolsetError             an agent loop's toolset
    │   ├── ToolNotOffered       allowed, but no provider offers it
    │   ├── ToolOfferedTwice     more than one tool has the name
    │   ├── ToolNotAllowed       the model called a tool that is not allowed
    │   ├── TurnsSpent           the model keeps calling tools after being refused
    │   └── GatewayUnreachable   no gateway at the url, or it refused the connection
    ├── ContentError             stored content
    │   ├── UnknownHandle
    │   ├── ExpiredHandle
    │   ├── ContentTooLarge
    │   ├── NotWritten           no file could be written for a host
    │   ├── BadLink              a link to content that was not made here, or was changed
    │   ├── ExpiredLink
    │   ├── StoreUnavailable     unreachable, refusing, full, or too slow
    │   ├── ProviderFileError    the provider of a model API cannot store or return a file
    │   └── UnsupportedContent   a model API cannot take it, and no fallback was wanted
    ├── VaultLocked              tokens cannot be read or kept
    │   └── LoginUnreadable      those of one login: their key is gone
    ├── ArgumentError            content named by an argument cannot be given to the tool
    ├── DocumentUnusable         the OpenAPI document of an HTTP API cannot be read or used
    │   ├── OutsideReference     a reference in it leads out of it
    │   └── OtherServer          an operation is on another server than the API
    ├── FetchError               content at a URL
    │   ├── FetchRefused         must not be fetched: not allowed, or at a private address
    │   └── FetchFailed          could not be fetched: no answer, a wrong one, too slow, too large
    ├── StateUnavailable         a database that gateways share cannot be used at present
    └── MediaError               bytes could not be converted as requested

A message says what happened and where; `remedy` says what to do about it. An UpstreamError also has a `failure`: the
same information as a value, with a `FailureCode` for programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple


class GatewayError(Exception):
    """Base class of all errors: `message` for people and models, `remedy` if there is one."""

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message

    @property
    def logged(self) -> str:
        """The text for logs and the audit trail: without anything that is for the caller alone."""
        return str(self)


class ConfigError(GatewayError):
    """The configuration cannot be used. `where` is the file and key, as `mcp-gateway.toml: upstreams.x.url`.

    `problems` are the errors that it combines, one for each line of its message; for a single error, itself.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str | None = None,
        remedy: str | None = None,
        problems: Sequence[ConfigError] = (),
    ) -> None:
        super().__init__(f"{where}: {message}" if where else message, remedy=remedy)
        self.where = where
        self._several = tuple(problems)

    @property
    def problems(self) -> tuple[ConfigError, ...]:
        """The individual errors."""
        return self._several or (self,)


class PortInUse(ConfigError):
    """Another program listens on the TCP port `port`; 0: on one that is not known."""

    def __init__(self, message: str, *, port: int = 0, where: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.port = port


class ConfigFileMissing(ConfigError):
    """The file does not exist."""


class ConfigFileUnreadable(ConfigError):
    """The file exists, but the system does not allow reading it."""


class ConfigMalformed(ConfigError):
    """The file is not TOML, or not JSON."""


class ProfileError(GatewayError):
    """A profile is unknown, extends itself, or sets something that does not exist."""


class InvalidRequest(GatewayError):
    """The host's request is malformed."""


class UnknownMethod(InvalidRequest):
    """The gateway does not serve this MCP method."""


class FileRefused(InvalidRequest):
    """A file cannot be sent or fetched as asked (SEP-2631); `data` says why to programs."""

    def __init__(self, message: str, *, data: Mapping[str, Any] | None = None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.data = data


class OutputUnavailable(GatewayError):
    """A tool's result cannot be given in a form that the host has chosen (SEP-3279)."""


class UnknownTool(InvalidRequest):
    """No tool of this name is offered to this host."""


class UnknownResource(InvalidRequest):
    """No upstream and no stored content has this `uri`."""

    def __init__(self, message: str, *, uri: str | None = None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.uri = uri


class UnknownSkill(InvalidRequest):
    """No upstream has this skill, or this directory of a skill, for this host."""


class UnknownPrompt(InvalidRequest):
    """No prompt of this name is offered to this host."""


class UnknownToolset(InvalidRequest):
    """No table `[toolsets]` has this name."""


class UnknownTask(InvalidRequest):
    """This caller has no task with this id."""


class UnknownLongCall(InvalidRequest):
    """This caller has no call with this id that took longer than its host waits."""


class TooManyCalls(GatewayError):
    """The caller has used up what its limits allow for now."""


class Overloaded(GatewayError):
    """The gateway can take no more for now: try again after `retry_after` seconds.

    `by_caller`: it could, but whoever asks has more in the queue than its share.
    """

    def __init__(
        self, message: str, *, retry_after: int = 1, by_caller: bool = False, remedy: str | None = None
    ) -> None:
        super().__init__(message, remedy=remedy or f"try again in {retry_after} s")
        self.retry_after = retry_after
        self.by_caller = by_caller


class AuditUnavailable(GatewayError):
    """The audit trail cannot be written, and the configuration wants requests to be refused for that."""


class NotAllowed(GatewayError):
    """A rule of the policy forbids a call, or its user has declined it; `rule` is its name, `""` for a pin."""

    def __init__(self, message: str, *, rule: str = "", remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.rule = rule


class ApprovalNeeded(NotAllowed):
    """A call needs the approval of its user."""


class StateUnavailable(GatewayError):
    """A database, such as that of the authorization server, cannot be read or written at present."""


class ScopeMissing(GatewayError):
    """The tool needs `scopes` that the caller's token lacks."""

    def __init__(self, message: str, scopes: Sequence[str] = (), *, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.scopes = tuple(scopes)


class FailureCode(StrEnum):
    """The kind of an upstream's failure, which determines its remedy (`gateway.upstream.remedies`)."""

    # Starting a program.
    COMMAND_NOT_FOUND = "command_not_found"
    INTERPRETER_NOT_FOUND = "interpreter_not_found"
    FOLDER_NOT_FOUND = "folder_not_found"
    NOT_A_FOLDER = "not_a_folder"
    NOT_EXECUTABLE = "not_executable"
    NOT_A_PROGRAM = "not_a_program"
    # A program that was started.
    START_TIMEOUT = "start_timeout"
    EXITED = "exited"
    PACKAGE_NOT_FOUND = "package_not_found"
    MODULE_MISSING = "module_missing"
    VARIABLE_MISSING = "variable_missing"
    NOT_MCP_ON_STDOUT = "not_mcp_on_stdout"
    MEMORY_EXCEEDED = "memory_exceeded"
    # Reaching an address.
    INVALID_URL = "invalid_url"
    HOST_NOT_FOUND = "host_not_found"
    CONNECTION_REFUSED = "connection_refused"
    NO_CONNECTION = "no_connection"
    CONNECT_TIMEOUT = "connect_timeout"
    PROXY_REFUSED = "proxy_refused"
    CERTIFICATE_REJECTED = "certificate_rejected"
    TLS_FAILED = "tls_failed"
    INVALID_HEADERS = "invalid_headers"
    # Its answer over HTTP.
    UNAUTHORIZED = "unauthorized"
    LOGIN_REQUIRED = "login_required"
    LOGIN_FAILED = "login_failed"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_REFUSED = "request_refused"
    PROXY_UNAUTHORIZED = "proxy_unauthorized"
    TOO_MANY_REQUESTS = "too_many_requests"
    OWN_UPSTREAM = "own_upstream"
    SERVER_ERROR = "server_error"
    HTTP_ERROR = "http_error"
    NOT_AN_EVENT_STREAM = "not_an_event_stream"
    # The document of an HTTP API.
    DOCUMENT_UNUSABLE = "document_unusable"
    # The protocol, over any transport.
    NOT_MCP = "not_mcp"
    MESSAGE_TOO_LARGE = "message_too_large"
    TOO_MANY_VALUES = "too_many_values"
    REFUSED = "refused"
    TIMED_OUT = "timed_out"
    SESSION_EXPIRED = "session_expired"
    CONNECTION_LOST = "connection_lost"
    BUSY = "busy"
    TOO_MUCH_WAITING = "too_much_waiting"
    # Caused by the gateway itself.
    STOPPING = "stopping"
    RECONFIGURED = "reconfigured"
    ASLEEP = "asleep"
    VACATED = "vacated"
    # Nothing more is known.
    UNAVAILABLE = "unavailable"
    SYSTEM_ERROR = "system_error"
    UNKNOWN = "unknown"


class Failure(NamedTuple):
    """One failure of an upstream: the error that it is for a running call, what happened, and what to do about it.

    `message` does not name the upstream. `details` has further facts for the remedy, such as the `module` that is
    missing.
    """

    kind: type[UpstreamError]
    code: FailureCode
    message: str
    remedy: str | None = None
    details: Mapping[str, str] = MappingProxyType({})

    @property
    def cause(self) -> str:
        """Message and remedy in one string, for display."""
        return f"{self.message} ({self.remedy})" if self.remedy else self.message

    def error(self, upstream: str, doing: str | None = None) -> UpstreamError:
        """Return the error to raise; `doing` is the method that was running, if any."""
        failure = self._replace(message=f"{self.message}, while {doing} was running") if doing else self
        return self.kind(upstream, failure.message, remedy=self.remedy, failure=failure)


class UpstreamError(GatewayError):
    """An upstream could not do its part; `upstream` is its name in the configuration, `failure` what happened."""

    usual: ClassVar[FailureCode] = FailureCode.UNKNOWN
    """The code of an error raised without a `failure`."""

    def __init__(
        self, upstream: str, message: str, *, remedy: str | None = None, failure: Failure | None = None
    ) -> None:
        super().__init__(f"upstream {upstream!r}: {message}", remedy=remedy)
        self.upstream = upstream
        self.failure = failure or Failure(type(self), self.usual, message, remedy)


class UpstreamUnavailable(UpstreamError):
    """The upstream is starting, stopped, disabled, or failed to start."""

    usual = FailureCode.UNAVAILABLE


class LoginRequired(UpstreamUnavailable):
    """The upstream waits for a login by its principal; `scopes` are those that it asked for, if it named any."""

    usual = FailureCode.LOGIN_REQUIRED

    def __init__(
        self,
        upstream: str,
        message: str = "waits for a login",
        *,
        remedy: str | None = None,
        failure: Failure | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        super().__init__(upstream, message, remedy=remedy or f"mcp-gateway login {upstream}", failure=failure)
        self.scopes = tuple(scopes)


class LoginOffered(LoginRequired):
    """The same, with a link as its remedy, which is for the caller alone: whoever has it can log in for them."""

    @property
    def logged(self) -> str:
        return self.message


class LoginFailed(UpstreamUnavailable):
    """The upstream's authorization server cannot be used, or it refused a login or a token."""

    usual = FailureCode.LOGIN_FAILED


class UpstreamBusy(UpstreamUnavailable):
    """So many calls wait for the upstream that this one was not queued: try again after `retry_after` seconds."""

    usual = FailureCode.BUSY
    retry_after = 1


class UpstreamTimeout(UpstreamError):
    """The upstream took longer than its configured limit."""

    usual = FailureCode.TIMED_OUT


class UpstreamLost(UpstreamError):
    """The upstream's process or connection ended while a call was running."""

    usual = FailureCode.CONNECTION_LOST


class UpstreamGarbage(UpstreamError):
    """The upstream answered with something that is not an MCP message, or is over a limit."""

    usual = FailureCode.NOT_MCP


class UpstreamRefused(UpstreamError):
    """The upstream answered with a JSON-RPC error, kept exactly as received."""

    def __init__(self, upstream: str, code: int, message: str, data: Any = None) -> None:
        said = f"answered with error {code}: {message}"
        super().__init__(upstream, message, failure=Failure(UpstreamRefused, FailureCode.REFUSED, said))
        self.code = code
        self.wire_message = message
        self.data = data

    def wire(self) -> Mapping[str, Any]:
        """The JSON-RPC error object, as the upstream sent it."""
        error: dict[str, Any] = {"code": self.code, "message": self.wire_message}
        return error if self.data is None else {**error, "data": self.data}


class HostRefused(GatewayError):
    """A host answered an upstream's request (sampling, elicitation, roots) with a JSON-RPC error, or not at all."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class DocumentUnusable(GatewayError):
    """The OpenAPI document of an HTTP API cannot be read or used; the message says why, without naming it."""


class OutsideReference(DocumentUnusable):
    """A reference leads out of the document."""


class OtherServer(DocumentUnusable):
    """The document says that an operation is on another server than the API, which gets no credentials."""


class ToolsetError(GatewayError):
    """An agent loop's toolset cannot do what was asked; the message begins with its alias, if it has one."""


class ToolNotOffered(ToolsetError):
    """A tool is in `allow_tools`, but none of the providers offers it."""


class ToolOfferedTwice(ToolsetError):
    """A name stands for more than one tool, so it is ambiguous."""


class ToolNotAllowed(ToolsetError):
    """The model called a tool that exists but is not in `allow_tools`, or belongs to another provider."""


class TurnsSpent(ToolsetError):
    """The model keeps calling tools after its calls were refused."""


class GatewayUnreachable(ToolsetError):
    """No gateway answers at the url, it does not accept the token, or the connection was lost."""


class ContentError(GatewayError):
    """Stored content could not be written or read."""


class UnknownHandle(ContentError):
    """This caller has no content with this handle."""


class ExpiredHandle(ContentError):
    """The content was stored for a while and is gone: expired, or evicted for newer content."""


class ContentTooLarge(ContentError):
    """The content is larger than the limit for stored content."""


class BadLink(ContentError):
    """A link to content that was not made by the gateway, or was changed."""


class ExpiredLink(ContentError):
    """A link to content that is no longer valid."""


class StoreUnavailable(ContentError):
    """The store does not work: it is unreachable, denies access, has a full disk, or does not answer in time."""


class ProviderFileError(ContentError):
    """A provider's file storage is unreachable, refuses, or only returns files that its models made."""


class NotWritten(ContentError):
    """Content could not be written to a file for a host to open."""


class UnsupportedContent(ContentError):
    """Content cannot be sent or stored where it should be."""


class VaultLocked(GatewayError):
    """The tokens for upstreams cannot be read or kept: the keyring is locked, or the file cannot be opened."""


class LoginUnreadable(VaultLocked):
    """The tokens of one login cannot be opened: they were sealed with another key, or are damaged."""


class RegistryUnavailable(GatewayError):
    """The registry of MCP servers does not answer, or not with what a registry answers."""


class EmbeddingsUnavailable(GatewayError):
    """The server of embeddings does not answer, or not with vectors."""


class ArgumentError(GatewayError):
    """Content that an argument of a call names is missing, of the wrong kind, too large, or not for this upstream."""


class FetchError(GatewayError):
    """Content at a URL could not be fetched. No message names more of the URL than scheme, host and port."""


class FetchRefused(FetchError):
    """The URL may not be fetched: the configuration does not allow it, or it leads to a private address."""


class FetchFailed(FetchError):
    """The URL could not be fetched: no answer, an answer without content, or one that is too slow or too large."""


class MediaError(GatewayError):
    """Bytes could not be decoded, converted or fitted; the message names the cause."""

"""The schema of mcp-gateway.toml: the tables and keys, with their defaults.

Reading files and the environment is `gateway.config.load_settings`; nothing here touches either.
"""

import ipaddress
import re
from collections.abc import Iterator
from datetime import date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, Field, field_validator, model_validator

from gateway.config.audit_settings import AuditSettings
from gateway.config.authorization_settings import AuthorizationServerSettings, PersonSettings
from gateway.config.base_url import BASE_URL
from gateway.config.caller_limit_settings import CallerLimitSettings
from gateway.config.claim_header_settings import COMPANY, ClaimHeaders, source_problem
from gateway.config.cluster_settings import ClusterSettings
from gateway.config.code_mode_settings import CodeModeSettings
from gateway.config.console_settings import ConsoleSettings
from gateway.config.experimental_settings import ExperimentalSettings
from gateway.config.issuer_settings import SCOPE, IssuerSettings
from gateway.config.locations import location
from gateway.config.login_settings import LoginSettings
from gateway.config.long_call_settings import LongCallSettings
from gateway.config.moments import moment_in
from gateway.config.openapi_settings import OperationSettings
from gateway.config.overload_settings import OverloadSettings
from gateway.config.policy_settings import PinMode, PinSettings, PolicySettings
from gateway.config.registry_settings import RegistrySettings
from gateway.config.result_cache_settings import ResultCacheSettings
from gateway.config.section import SecretSection, Section
from gateway.config.shared_settings import SharedSettings
from gateway.config.token_count_settings import TokenCountSettings
from gateway.config.tool_search_settings import ToolSearchSettings
from gateway.config.toolset_settings import ToolsetSettings, toolset_problem, which_toolset
from gateway.config.upstream_auth_settings import UpstreamAuthSettings
from gateway.core.model.json_values import is_dict
from gateway.core.model.quantities import Duration, Size
from gateway.core.profiles.profile import ProfileSource
from gateway.core.registry.entry import SERVER_AT_VERSION

Seconds = Annotated[Duration, Field(gt=0, le=86_400)]
Bytes = Annotated[Size, Field(gt=0)]
BytesOrNone = Annotated[Size, Field(ge=0)]
"""0 means something other than a number of bytes."""
Transport = Literal["stdio", "http", "sse", "auto"]
PrefixRule = Literal["always", "when-needed", "never"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

FILE_VERSION = 1
"""The version of the format of mcp-gateway.toml. It grows when a gateway that does not know it cannot read a file."""

OWN_NAME = "gateway"
"""The name of the gateway's own tools; no upstream may have it."""

UPSTREAM_NAME = r"^[A-Za-z0-9]+(?:(?:-+|_)[A-Za-z0-9]+)*$"
"""Letters, digits, `-` and single `_`, so that `<upstream>__<tool>` splits in one way only."""
UPSTREAM_NAME_LENGTH = 40
"""Maximum characters of such a name."""

SESSION = r"^(shared|host-session|client|principal|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$"
"""The possible owners of an upstream's state."""


def is_url(place: str) -> bool:
    """Whether a place is a URL, and not a file."""
    return place.startswith(("http://", "https://"))


ROOT_PATH = r"^(/[A-Za-z0-9._~-]+)*$"

ALLOWED_URL = r"https?://(?:\*\.)?(?:[^\s/?#@:*\[\]]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[^\s?#]*)?"
"""A scheme, a host (or every host below a domain), a port, and a path in which `*` is any text."""


HASHED = r"^sha256:[0-9a-f]{64}$"
PRINCIPAL = r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"
RESERVED_PRINCIPALS = frozenset({"local", "token"})
"""The principals of hosts without a token, and of hosts with `[http] token`."""

SHORTEST_TOKEN = 16


class Timeouts(Section):
    """Limits in seconds: `start` and `install` until it is ready, `call` for a whole call, `idle` without progress."""

    start: Seconds = 30.0
    """Until the upstream is ready: process started, handshake done, tools listed."""
    install: Seconds = 600.0
    """The same while a launcher (`npx`, `uvx`, `docker run`, ...) is running, which may have to install it first."""
    call: Seconds = 300.0
    """For a whole call, whatever progress it reports."""
    idle: Seconds = 120.0
    """Without any message about the call; progress restarts it."""
    answer: Seconds = 600.0
    """For the host, and the person using it, to answer what the upstream asks during a call."""


class UpstreamLimits(Section):
    """Limits for one upstream; 0 means no limit."""

    calls: Annotated[int, Field(ge=0)] = 100
    """Calls that run at once; others wait for their turn, in order, as long as their own limit allows."""
    queue: Annotated[int, Field(ge=0)] = 1_000
    """Calls that wait for their turn; one more is refused, with the advice to try again."""
    memory: BytesOrNone = 0
    """Bytes of RAM for its process and its children (Linux, macOS); above it, it is stopped until the next call."""
    list_bytes: BytesOrNone = 16 * 1024 * 1024
    """Bytes of RAM for everything that it lists (tools, resources, templates, prompts); the excess is left out."""
    restarts: Annotated[int, Field(ge=0)] = 100
    """Restarts within an hour; after that, it is started by the next call, or when the hour has passed."""


class ToolTimeouts(Section):
    """Limits for one tool; omitted ones are those of the upstream."""

    call: Seconds | None = None
    """For a whole call of this tool."""
    idle: Seconds | None = None
    """Without any message about the call."""


class ContentArgument(Section):
    """An argument that takes content though its schema does not say so: `"image"` is short for `{ kind = "image" }`."""

    kind: Literal["image", "audio", "video", "document", "3d", "cad", "other", "any"] | None = None
    """The kind of content; omitted: as its schema says, or else any."""
    form: Literal["base64", "data-uri", "path", "url", "object"] | None = Field(default=None, alias="as")
    """The form that the tool requires; omitted: as its schema says, or else base64. A path requires a `command`."""

    @model_validator(mode="before")
    @classmethod
    def _of_a_kind(cls, given: Any) -> Any:
        return {"kind": given} if isinstance(given, str) else given


class ToolsSettings(Section):
    """Which of an upstream's tools are offered, and how. Patterns are shell globs on the upstream's own names."""

    include: tuple[str, ...] = ("*",)
    """Tools that are offered."""
    exclude: tuple[str, ...] = ()
    """Tools that are not offered even if included."""
    rename: dict[str, str] = Field(default_factory=dict[str, str])
    """New names for tools: `{ its_name = "new_name" }`."""
    describe: dict[str, str] = Field(default_factory=dict[str, str])
    """New descriptions for tools."""
    timeout: dict[str, ToolTimeouts] = Field(default_factory=dict[str, ToolTimeouts])
    """Different limits for tools."""
    max_tokens: dict[str, Annotated[int, Field(gt=0)]] = Field(default_factory=dict[str, int])
    """Maximum tokens of one result, by tool: `{ its_name = 8_000 }`, in place of `tokens.max_result` of the profile."""
    never_early: tuple[str, ...] = ()
    """Tools whose calls are not answered before they have ended (`[long_calls]`), however long the host waits."""
    cache: tuple[str, ...] = ()
    """Tools whose results are kept for equal calls of the same principal, if they declare `readOnlyHint`."""
    cache_ttl: Seconds = 300.0
    """Seconds for which such a result is kept; less if it says so itself (`ttlMs`)."""
    content: dict[str, dict[str, ContentArgument]] = Field(default_factory=dict[str, dict[str, ContentArgument]])
    """Arguments that take content, by tool and path: `{ analyze = { "items[].photo" = "image" } }`.

    Can also be written as `[upstreams.NAME.tools.TOOL.content]`.
    """

    @model_validator(mode="before")
    @classmethod
    def _by_tool(cls, given: Any) -> Any:
        if not is_dict(given):
            return given
        named = {name for name, table in given.items() if name not in cls.model_fields and _is_content(table)}
        listed: Any = given.get("content", {})
        if not named or not is_dict(listed):
            return given
        content = listed | {name: given[name]["content"] for name in named}
        return {name: table for name, table in given.items() if name not in named} | {"content": content}


def _is_content(table: Any) -> bool:
    return is_dict(table) and set(table) == {"content"}


class UpstreamSettings(SecretSection):
    """One upstream: an MCP server (`command`: stdio, `url`: Streamable HTTP or SSE), or an HTTP API (`openapi`)."""

    command: str | None = None
    """The program to start: a name on the PATH, or a path (relative to the file)."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Its environment, in addition to the few variables that every program needs."""
    cwd: Path | None = None
    """Its working directory, relative to the file."""
    url: str | None = None
    """The address of a server that is already running."""
    openapi: Annotated[str, Field(min_length=1)] | None = None
    """The OpenAPI document (3.0 or 3.1) of an HTTP API whose operations become tools: a file, or a URL."""
    base_url: Annotated[str, Field(pattern=BASE_URL)] | None = None
    """The base URL of that API; omitted: as the document at a URL says, if it is on the same server."""
    operations: OperationSettings = OperationSettings()
    replay: Path | None = None
    """The folder of a recording (`serve --record`) that answers in place of a server: nothing is started."""
    replay_match: Literal["strict", "nearest"] = "strict"
    """Whether only recorded arguments are answered, or others with the nearest recorded ones of the same tool."""
    transport: Transport = "auto"
    """How to connect to it; `auto` is stdio for a command, and for a url Streamable HTTP, or else SSE."""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """HTTP headers sent to the url with every request."""
    headers_from_claims: ClaimHeaders = Field(default_factory=dict[str, str])
    """Headers that say who calls, each with a claim of the caller's token, or `principal`: `{ X-User = "email" }`."""
    claims_from: str | None = None
    """The issuer (`[access.issuers]`) whose claims those are, or `authorization_server` (`oidc`); needed if several."""
    auth: UpstreamAuthSettings | None = None
    """How to log in to it (OAuth), if what it says of itself is not enough."""
    http_client: Literal["gateway", "sdk"] = "gateway"
    """The client for Streamable HTTP: the gateway's own, or the MCP SDK's, which is slower. Through a proxy: `sdk`."""
    timeout: Timeouts = Timeouts()
    limits: UpstreamLimits = UpstreamLimits()
    tools: ToolsSettings = ToolsSettings()
    session: Annotated[str, Field(pattern=SESSION)] | None = None
    """The owner of its state (a browser, a login): `shared`, `host-session`, `client`, `principal` or `header:NAME`.

    Omitted: a host's session; its principal, name and profile if it has none.
    """
    session_idle: Seconds = 3_600.0
    """Seconds without a call after which a host's own session is closed."""
    max_sessions: Annotated[int, Field(ge=1, le=10_000)] = 32
    """Maximum number of hosts' own sessions at once."""
    idle_stop: Annotated[Duration, Field(ge=0, le=86_400)] = 0.0
    """Seconds without a call after which it is stopped until the next one; its tools stay listed. 0: never."""
    files: tuple[Path, ...] = ()
    """Folders with media, such as a saved PDF or screenshot, that is shown as content if its text names the file."""
    accept: Literal["any", "own", "none"] = "any"
    """Stored content that its tools may be given: `own` is content from itself or from the host, not from others."""
    read_only: bool = False
    """Whether only tools that declare `readOnlyHint` are offered."""
    pins: PinMode | None = None
    """What happens if its tools change after they were pinned; omitted: as `[pins] mode` says."""
    registry: Annotated[str, Field(pattern=SERVER_AT_VERSION)] | None = None
    """The entry of the registry that it was added from, `NAME@VERSION`; `mcp-gateway update` looks for a newer one."""
    enabled: bool = True
    """Whether it is connected to at all."""
    max_message_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of a JSON-RPC message from this upstream."""

    @property
    def endpoint(self) -> str | None:
        """The address to which requests are sent; None for a program."""
        return self.url if self.openapi is None else self.base_url or self.openapi

    @property
    def transport_name(self) -> str:
        """How it is connected to: `replay`, `stdio`, `openapi`, or for a url `transport`."""
        if self.replay is not None:
            return "replay"
        if self.openapi is not None:
            return "openapi"
        return "stdio" if self.command is not None else self.transport

    @model_validator(mode="after")
    def _one_way_in(self) -> "UpstreamSettings":
        if self.replay is None and self.openapi is None and (self.command is None) == (self.url is None):
            raise ValueError("give either command (a program to start) or url (a server to connect to)")
        if self.command is not None and self.transport not in ("auto", "stdio"):
            raise ValueError(f"transport {self.transport!r} needs a url, but command is given")
        if self.url is not None and self.transport == "stdio":
            raise ValueError("transport 'stdio' needs a command, but url is given")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://")
        if self.endpoint is None and self.auth is not None:
            raise ValueError("auth needs a url: a program gets its credentials from env")
        if self.endpoint is None and self.headers_from_claims:
            raise ValueError("headers_from_claims needs a url: a program has one environment for all who call")
        if twice := {name.lower() for name in self.headers} & {name.lower() for name in self.headers_from_claims}:
            raise ValueError(f"give either headers.{min(twice)} or headers_from_claims.{min(twice)}")
        if self.claims_from is not None and not self.headers_from_claims:
            raise ValueError("claims_from needs headers_from_claims")
        if self.auth is not None and any(name.lower() == "authorization" for name in self.headers):
            raise ValueError("give either auth or headers.Authorization: both would write the same header")
        return self

    @model_validator(mode="after")
    def _answers_from_one_place(self) -> "UpstreamSettings":
        if self.replay is not None and any((self.command, self.url, self.openapi)):
            raise ValueError("replay answers in place of a server, so take out command, url and openapi")
        if self.replay is None and self.replay_match != "strict":
            raise ValueError("replay_match needs replay, the folder of a recording")
        return self

    @model_validator(mode="after")
    def _document_has_an_api(self) -> "UpstreamSettings":
        if self.openapi is None:
            if self.base_url is not None or self.operations != OperationSettings():
                name = "operations" if self.base_url is None else "base_url"
                raise ValueError(f"{name} needs openapi, the document of an HTTP API")
            return self
        if self.command is not None or self.url is not None:
            raise ValueError("openapi describes an HTTP API, so take out command and url; its address is base_url")
        if self.transport != "auto":
            raise ValueError(f"transport {self.transport!r} is for a url or a command, but openapi is given")
        if self.base_url is None and not is_url(self.openapi):
            raise ValueError("openapi is a file, so give base_url, the address of the API that it describes")
        return self

    @model_validator(mode="after")
    def _paths_mean_something(self) -> "UpstreamSettings":
        forms = {argument.form for arguments in self.tools.content.values() for argument in arguments.values()}
        if self.command is None and "path" in forms:
            raise ValueError('as = "path" needs a command: only a program on this machine can open our files')
        return self


class GatewaySettings(Section):
    """How the gateway presents itself."""

    name: str = "mcp-gateway"
    """The name by which the gateway introduces itself to hosts."""
    prefix: PrefixRule = "always"
    """Whether tools are offered as `<upstream>__<tool>`; `when-needed`: only if names collide."""
    profile: str | None = None
    """The profile for every host, regardless of what it says it is."""
    model: Annotated[str, Field(min_length=1)] | None = None
    """The model behind the hosts, if it decides what is shown (`gpt-5.5`); omitted: as named by the host."""
    instructions: str | None = None
    """Instructions for hosts about the gateway as a whole."""
    public_url: Annotated[str, Field(pattern=BASE_URL)] | None = None
    """The public URL of the gateway's HTTP side, such as `https://gateway.example.com/mcp-gateway`, for links."""
    root_path: Annotated[str, Field(pattern=ROOT_PATH)] = ""
    """The path under which a reverse proxy serves the gateway, such as `/mcp-gateway`, whether or not it strips it."""


class HttpSettings(Section):
    """The HTTP side of `serve --http`."""

    bind: str = "127.0.0.1"
    """The address to listen on; any other than a loopback one requires a token."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8484
    """The port; 0 selects a free one."""
    token: str | None = None
    """The bearer token that hosts must send; can also be set with `$MCP_GATEWAY_TOKEN`."""
    openapi: bool = False
    """Whether each tool is also at `POST /tools/<name>`, described by `/openapi.json`, for programs without MCP."""
    allowed_hosts: tuple[str, ...] = ()
    """Additional names under which the gateway may be called (Host header), besides the loopback ones and `bind`.

    If `bind` is not a loopback address, any IP address and the name of this machine are allowed too.
    """
    allowed_origins: tuple[str, ...] = ()
    """Additional web origins whose pages may call the gateway (CORS), besides the loopback ones.

    `*` is any, if a token is required.
    """
    tls_certificate: Path | None = None
    """The file with the certificate (PEM, with its chain), relative to the configuration; needs `tls_key`."""
    tls_key: Path | None = None
    """The file with the certificate's private key (PEM, without a passphrase)."""
    max_request_bytes: Bytes = 16 * 1024 * 1024
    """Maximum size of a request from a host; on stdio, of a line."""
    request_timeout: Seconds = 20.0
    """Seconds for the headers of a request, and again for its body, plus one for each 500 bytes."""
    max_connections: Annotated[int, Field(ge=8)] = 1_000
    """Maximum number of open connections; never more than three eighths of the process's file limit."""
    max_connections_per_address: Annotated[int, Field(ge=8)] = 200
    """The same for one address, except for the loopback and `trusted_proxies`."""
    max_unread_bytes: Bytes = 64 * 1024 * 1024
    """Maximum data waiting for a host that does not read its response stream; above it, the stream is closed."""
    session_idle: Seconds = 1_800.0
    """Seconds without a request or an open stream after which a host's session is forgotten."""
    drain_grace: Annotated[Duration, Field(ge=0, le=3_600)] = 30.0
    """Seconds for running requests to end when the gateway is told to stop; a second signal ends it at once."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of reverse proxies whose `Forwarded` and `X-Forwarded-*` headers are used: for links, and
    for the address that the audit trail and the log have of a request.
    """

    @model_validator(mode="after")
    def _has_both_files(self) -> "HttpSettings":
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("needs both tls_certificate and tls_key, or neither")
        return self

    @field_validator("trusted_proxies")
    @classmethod
    def _are_networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for place, proxy in enumerate(proxies, start=1):
            try:
                ipaddress.ip_network(proxy, strict=False)
            except ValueError:
                raise ValueError(f"entry {place} is neither an address nor a network such as 10.0.0.0/8") from None
        return proxies


class TokenSettings(Section):
    """One token: whom it belongs to, what it opens, and until when. `mcp-gateway token add` writes such a table."""

    hash: Annotated[str | None, Field(pattern=HASHED)] = None
    """The SHA-256 of the token, so that the file does not hold it."""
    token: str | None = None
    """The token itself, in place of `hash`: `${keyring:NAME}`, `${file:PATH}`, at least 16 characters."""
    principal: Annotated[str | None, Field(pattern=PRINCIPAL, max_length=100)] = None
    """Whom content, sessions and tasks belong to; tokens may share one. Omitted: the name of the token."""
    upstreams: tuple[str, ...] = ("*",)
    """Upstreams that exist for this token; shell globs."""
    tools: tuple[str, ...] = ("*",)
    """Tools that exist for this token: shell globs on `upstream__tool`, whatever name the tool is offered under."""
    profile: str | None = None
    """The profile of hosts with this token that choose none by path or header."""
    toolset: str | None = None
    """The toolset that hosts with this token have; one that they choose narrows it further."""
    expires: AwareDatetime | date | None = None
    """When the token becomes invalid; a date counts from its beginning, in UTC."""
    calls_per_minute: Annotated[int | None, Field(ge=1)] = None
    """Maximum number of tool calls within a minute, for all hosts with this token together."""
    limits: CallerLimitSettings = CallerLimitSettings()
    """Limits that are counted for this token alone, in place of those for its principal in `[access.limits]`."""
    url: bool = False
    """Whether the token may also be in the path, as `/t/TOKEN/mcp`, for hosts that can send no header."""

    @field_validator("token")
    @classmethod
    def _cannot_be_guessed(cls, token: str | None) -> str | None:
        if token is not None and len(token.strip()) < SHORTEST_TOKEN:
            raise ValueError(f"has less than {SHORTEST_TOKEN} characters, and could be guessed")
        return token

    @field_validator("expires", mode="before")
    @classmethod
    def _is_a_moment(cls, given: Any) -> Any:
        # In place of the two problems that the two types would give.
        moment = moment_in(given) if isinstance(given, str) else given
        if isinstance(moment, datetime) and moment.tzinfo is None:
            raise ValueError("needs a time zone, such as the Z of 2027-01-31T12:00:00Z")
        if moment is not None and not isinstance(moment, date):
            raise ValueError("must be a date or a time, such as 2027-01-31 or 2027-01-31T12:00:00Z")
        return moment

    @field_validator("principal")
    @classmethod
    def _is_free(cls, principal: str | None) -> str | None:
        if principal in RESERVED_PRINCIPALS:
            raise ValueError(f"the principal {principal!r} is the gateway's own: choose another")
        return principal

    @model_validator(mode="after")
    def _is_one_token(self) -> "TokenSettings":
        if (self.hash is None) == (self.token is None):
            raise ValueError("needs either hash or token: `mcp-gateway token add` makes one")
        if self.calls_per_minute is not None and self.limits.calls_per_minute is not None:
            raise ValueError("has calls_per_minute and limits.calls_per_minute: give one of them")
        return self


class AccessSettings(Section):
    """Who may use the gateway over HTTP, and what each may reach. A host on stdio needs no token, and reaches all."""

    tokens: dict[Annotated[str, Field(pattern=PRINCIPAL, max_length=100)], TokenSettings] = Field(
        default_factory=dict[str, TokenSettings]
    )
    limits: CallerLimitSettings = CallerLimitSettings()
    """Limits for each principal, for all of its hosts together: `local`, the user of this machine, is one of them."""
    issuers: dict[Annotated[str, Field(pattern=PRINCIPAL, max_length=100)], IssuerSettings] = Field(
        default_factory=dict[str, IssuerSettings]
    )
    scopes: dict[str, tuple[Annotated[str, Field(pattern=SCOPE)], ...]] = Field(
        default_factory=dict[str, tuple[str, ...]]
    )
    """Scopes that a call needs if its token comes from an authorization server: `{ "github__delete_*" = ["admin"] }`.

    The keys are shell globs on `upstream__tool`. Tokens of `[access.tokens]` have no scopes, and need none.
    """
    people: dict[Annotated[str, Field(pattern=PRINCIPAL, max_length=100)], PersonSettings] = Field(
        default_factory=dict[str, PersonSettings]
    )
    authorization_server: AuthorizationServerSettings | None = None

    def toolsets(self) -> Iterator[tuple[str, str]]:
        """Yield the names of toolsets in these tables, each with where it is."""
        server = self.authorization_server
        tables: list[tuple[str, str | None]] = [
            *((f"access.tokens.{name}", one.toolset) for name, one in self.tokens.items()),
            *((f"access.people.{name}", one.toolset) for name, one in self.people.items()),
            *((f"access.issuers.{name}", one.toolset) for name, one in self.issuers.items()),
            ("access.authorization_server.oidc", server.oidc.toolset if server is not None and server.oidc else None),
        ]
        yield from ((f"{where}.toolset", toolset) for where, toolset in tables if toolset is not None)

    @field_validator("tokens", "people")
    @classmethod
    def _names_are_free(cls, tables: dict[str, Any]) -> dict[str, Any]:
        if taken := RESERVED_PRINCIPALS & tables.keys():
            raise ValueError(f"the name {min(taken)!r} is the gateway's own: choose another")
        return tables

    @model_validator(mode="after")
    def _somebody_can_log_in(self) -> "AccessSettings":
        server = self.authorization_server
        if server is not None and server.oidc is None and not any(one.hash for one in self.people.values()):
            raise ValueError("authorization_server needs people who can log in: `mcp-gateway person add NAME` adds one")
        return self


class HistorySettings(Section):
    """How much media of a conversation's tool results is passed on to a model API; the rest becomes lines."""

    results: Annotated[int, Field(ge=0)] = 20
    """The newest results with media that are passed on in full: at least this many, less than twice as many. 0: all."""
    bytes: BytesOrNone = 20_000_000
    """Maximum size of media in total. 0: the API's own limit."""


class ModelProxySettings(Section):
    """The proxy in front of a model API, which puts media in tool results where the model sees it."""

    to: str | None = None
    """The base url of the model API, such as `https://api.openai.com/v1`; omitted: `serve` runs no proxy."""
    bind: str = "127.0.0.1"
    """The address to listen on; any other than a loopback one requires a token."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8485
    """The port; 0 selects a free one."""
    token: str | None = None
    """The token that clients must send as `X-MCP-Gateway-Token`; their Authorization header is for the model API."""
    profile: str | None = None
    """The model profile; omitted: chosen by the base url and the model's name."""
    allowed_hosts: tuple[str, ...] = ()
    """Additional names under which the proxy may be called (Host header), besides the loopback ones and `bind`.

    If `bind` is not a loopback address, any IP address and the name of this machine are allowed too.
    """
    allowed_origins: tuple[str, ...] = ()
    """Additional web origins that may call the proxy (Origin header), besides the loopback ones."""
    max_request_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of a request from a client."""
    timeout: Seconds = 600.0
    """Seconds without a byte from the model API."""
    upload_above: BytesOrNone = 0
    """Larger media is uploaded once to the provider's own files, with the key in the environment. 0: never."""
    reinject: bool = True
    """Whether content named by its handle in a line of the gateway's own is put back in place of the line."""
    history: HistorySettings = HistorySettings()

    @field_validator("to")
    @classmethod
    def _is_address(cls, to: str | None) -> str | None:
        if to is not None and not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", to):
            raise ValueError("give the base url of the model API: http:// or https://, no user, no query")
        return to

    @field_validator("token")
    @classmethod
    def _is_no_blank(cls, token: str | None) -> str | None:
        if token is not None and not token.strip():
            raise ValueError("is empty: leave it out, or give one that cannot be guessed")
        return token


class StoreSettings(Section):
    """The store for content that a host cannot show."""

    url: str = "memory://"
    """`memory://`, `file:///folder`, `s3://bucket/prefix?endpoint=...&region=...`, `gs://...` or `az://...`."""
    max_bytes: Bytes = 256 * 1024 * 1024
    """Maximum size of all content; the least recently used is evicted."""
    max_bytes_per_owner: Bytes | None = None
    """Maximum size of one principal's content; its own least recently used is evicted."""
    expires: Annotated[Duration, Field(gt=0, le=366 * 86_400)] = 3_600.0
    """Seconds for which content is kept after it was last stored."""
    timeout: Seconds = 30.0
    """Seconds for one answer of the store, or for one piece of a stream."""
    key: str | None = None
    """The key for making handles, the same for all gateways on one store; omitted: one is created and kept there."""

    @field_validator("url")
    @classmethod
    def _is_a_place(cls, url: str) -> str:
        location(url)
        return url

    @field_validator("key")
    @classmethod
    def _cannot_be_guessed(cls, key: str | None) -> str | None:
        if key is not None and len(key.strip()) < 16:
            raise ValueError("is too short: give 16 characters or more that cannot be guessed, or leave it out")
        return key


class ContentSettings(Section):
    """How content is taken in, and how it is served over HTTP."""

    key: Annotated[str, Field(min_length=16)] | None = None
    """The key for signing links, at least 16 characters; omitted: created once, and kept for this user."""
    link_lifetime: Annotated[Duration, Field(gt=0, le=31_536_000)] = 3_600.0
    """Minimum seconds for which a link is valid; up to a quarter more, so that equal links stay equal."""
    max_upload_bytes: Bytes = 1024 * 1024 * 1024
    """Maximum size of an upload."""
    folders: tuple[Path, ...] = ()
    """Folders from which `gateway_put` may read files by path, following links; relative to the file."""


class FetchSettings(Section):
    """The URLs that the gateway may fetch itself; none by default."""

    allow: tuple[str, ...] = ()
    """URLs that may be fetched, as patterns: `https://images.example.com/public/*`, `https://*.example.com`.

    `*` in a path is any text.
    """
    allow_private: tuple[str, ...] = ()
    """Allowed hosts that may have private addresses, such as `127.0.0.1:9000` or `minio.lan`."""
    max_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of content that is fetched."""
    timeout: Seconds = 60.0
    """Seconds for a whole fetch."""
    idle: Seconds = 15.0
    """Seconds without a byte, for resolving a name, and for connecting."""
    redirects: Annotated[int, Field(ge=0, le=20)] = 5
    """Maximum number of redirects that are followed, each subject to the same rules."""

    @field_validator("allow")
    @classmethod
    def _are_patterns(cls, allow: tuple[str, ...]) -> tuple[str, ...]:
        for place, pattern in enumerate(allow, start=1):
            if not re.fullmatch(ALLOWED_URL, pattern):
                raise ValueError(f"entry {place} is not a pattern such as https://images.example.com/public/*")
        return allow


class MediaSettings(Section):
    """Limits on the processing of images and documents."""

    workers: Annotated[int, Field(ge=1, le=64)] = 2
    """Maximum number of concurrent jobs, each in its own process. One more may run for a caller without any."""
    timeout: Seconds = 20.0
    """Seconds for one job; then its process is killed."""
    result_timeout: Seconds = 60.0
    """Seconds for all jobs of one result in total, not counting the wait for a process; the rest is skipped."""
    max_pixels: Annotated[int, Field(gt=0)] = 60_000_000
    """Maximum pixels of an image that is decoded, checked in its header."""
    max_input_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of an image, document or sound that is decoded."""
    memory_bytes: Bytes = 1024 * 1024 * 1024
    """Memory of one worker process, if the platform can limit it."""


DescribedKind = Literal["image", "audio"]


class DescribeModel(Section):
    """A model API for descriptions: an OpenAI-compatible one (`openai_chat`) or Anthropic's (`anthropic_messages`)."""

    api: Literal["openai_chat", "anthropic_messages"] = "openai_chat"
    """The format of its requests."""
    url: str | None = None
    """Its base url, such as `https://api.openai.com/v1` or `https://api.anthropic.com`; omitted: not used."""
    model: str = ""
    """The model's name."""
    api_key: str | None = None
    """The API key, such as `${OPENAI_API_KEY}`; sent to the url only."""

    @model_validator(mode="after")
    def _can_be_asked(self) -> "DescribeModel":
        if self.url is None:
            return self
        if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", self.url):
            raise ValueError("give the base url of the model API: http:// or https://, no user, no query")
        if not self.model:
            raise ValueError("name the model")
        return self


class DescribeSettings(Section):
    """Descriptions of images and sounds in words, for hosts and models that cannot take them. Off by default.

    Set `command`, `tool`, or the `url` of a `model`: content that tools returned is sent to it.
    """

    command: tuple[str, ...] = ()
    """A program and its arguments: bytes on stdin, their type in `$MCP_GATEWAY_MEDIA_TYPE`, the words on stdout."""
    tool: str | None = None
    """A tool of an upstream, as `<upstream>__<tool>`, whose text is the description."""
    arguments: dict[str, str] = Field(default_factory=lambda: {"image": "{uri}"})
    """Its arguments: `{uri}` is a data URI, `{data}` the base64, `{type}` the media type, `{prompt}` the prompt."""
    model: DescribeModel = DescribeModel()
    kinds: tuple[DescribedKind, ...] = ("image",)
    """The kinds of media to describe: `image`, `audio`."""
    prompt: str = "Describe this precisely for someone who cannot perceive it. Quote all text in it. No introduction."
    """The prompt for the model."""
    timeout: Seconds = 30.0
    """Seconds for one description."""
    max_chars: Annotated[int, Field(ge=40, le=100_000)] = 2_000
    """Maximum length of a description; longer ones are cut."""
    at_once: Annotated[int, Field(ge=1, le=64)] = 2
    """Maximum number of concurrent descriptions."""
    remembered: Annotated[int, Field(ge=0, le=100_000)] = 1_000
    """Maximum number of descriptions remembered, by content."""

    @model_validator(mode="after")
    def _one_way(self) -> "DescribeSettings":
        if sum(map(bool, (self.command, self.tool, self.model.url))) > 1:
            raise ValueError("give one of command, tool and model.url")
        if self.tool is not None and "__" not in self.tool.strip("_"):
            raise ValueError("give tool as <upstream>__<tool>")
        return self


class FilesSettings(Section):
    """Files for hosts that cannot show content but can open files: for profiles that show it as `file`.

    Off until `dir` or `roots` is set. Without them, such content is a line with its handle; with them, the line has the
    path too.
    """

    dir: Path | None = None
    """The folder for the files, relative to the file; created if necessary, for this user only."""
    roots: bool = False
    """Whether they go into a folder `.mcp-gateway` in the host's own workspace (its first root), if it reports one."""
    expires: Seconds = 3_600.0
    """Seconds after which a file is removed; when the gateway ends, all are."""
    max_bytes: Bytes = 256 * 1024 * 1024
    """Maximum size of all files; the oldest are removed."""


class LimitSettings(Section):
    """Limits on results, and on content in arguments."""

    result_bytes: Bytes = 64 * 1024 * 1024
    """Maximum size of a result from an upstream; a larger one becomes an error that names the size."""
    blocks: Annotated[int, Field(gt=0)] = 1_000
    """Maximum number of content blocks in one result."""
    argument_bytes: Bytes = 32 * 1024 * 1024
    """Maximum size of content named by an argument, unless the tool is given a link to it."""
    call_bytes: Bytes = 64 * 1024 * 1024
    """The same for all arguments of one call in total."""


class LoggingSettings(Section):
    """The log that `serve` writes to stderr."""

    format: LogFormat = "text"
    """Lines for people, or one JSON object per line for machines."""
    level: LogLevel = "info"
    """Minimum level; `info` logs one line for each call."""
    levels: dict[str, LogLevel] = Field(default_factory=dict[str, LogLevel])
    """Different levels for parts of the gateway: `{ upstream = "debug", telemetry = "warning" }`."""
    content: bool = False
    """Whether each call's line shows its arguments and result, shortened; base64 and secrets are never shown."""

    @field_validator("levels")
    @classmethod
    def _parts_exist(cls, levels: dict[str, LogLevel]) -> dict[str, LogLevel]:
        for name in levels:
            if not name.isidentifier() or find_spec(f"gateway.{name}") is None:
                raise ValueError(f"the gateway has no part called {name!r}: name a package of it, such as 'upstream'")
        return levels


class Settings(SecretSection):
    """The whole file."""

    version: Annotated[int, Field(ge=1, le=FILE_VERSION)] = FILE_VERSION
    """The version of the file's format, so that a gateway too old for it says so."""
    gateway: GatewaySettings = GatewaySettings()
    http: HttpSettings = HttpSettings()
    access: AccessSettings = AccessSettings()
    policy: PolicySettings = PolicySettings()
    pins: PinSettings = PinSettings()
    logins: LoginSettings = LoginSettings()
    model_proxy: ModelProxySettings = ModelProxySettings()
    store: StoreSettings = StoreSettings()
    content: ContentSettings = ContentSettings()
    fetch: FetchSettings = FetchSettings()
    media: MediaSettings = MediaSettings()
    describe: DescribeSettings = DescribeSettings()
    files: FilesSettings = FilesSettings()
    limits: LimitSettings = LimitSettings()
    long_calls: LongCallSettings = LongCallSettings()
    overload: OverloadSettings = OverloadSettings()
    result_cache: ResultCacheSettings = ResultCacheSettings()
    logging: LoggingSettings = LoggingSettings()
    audit: AuditSettings = AuditSettings()
    console: ConsoleSettings = ConsoleSettings()
    tokens: TokenCountSettings = TokenCountSettings()
    tool_search: ToolSearchSettings = ToolSearchSettings()
    code_mode: CodeModeSettings = CodeModeSettings()
    shared: SharedSettings = SharedSettings()
    registry: RegistrySettings = RegistrySettings()
    cluster: ClusterSettings = ClusterSettings()
    experimental: ExperimentalSettings = ExperimentalSettings()
    upstreams: dict[Annotated[str, Field(pattern=UPSTREAM_NAME, max_length=UPSTREAM_NAME_LENGTH)], UpstreamSettings] = (
        Field(default_factory=dict[str, UpstreamSettings])
    )
    toolsets: dict[Annotated[str, Field(pattern=UPSTREAM_NAME, max_length=UPSTREAM_NAME_LENGTH)], ToolsetSettings] = (
        Field(default_factory=dict[str, ToolsetSettings])
    )
    profiles: dict[str, ProfileSource] = Field(default_factory=dict[str, ProfileSource])
    """A user's own host profiles, in the schema of the built-in ones."""

    @field_validator("upstreams")
    @classmethod
    def _own_name_is_free(cls, upstreams: dict[str, UpstreamSettings]) -> dict[str, UpstreamSettings]:
        if OWN_NAME in upstreams:
            raise ValueError(f"the name {OWN_NAME!r} is the gateway's own: give the upstream another")
        return upstreams

    @model_validator(mode="after")
    def _toolsets_exist(self) -> Self:
        if problem := toolset_problem(self.toolsets, self.upstreams):
            raise ValueError(problem)
        for where, name in self.access.toolsets():
            if name not in self.toolsets:
                raise ValueError(f"{where}: there is no toolset {name!r}; {which_toolset(name, self.toolsets)}")
        return self

    @model_validator(mode="after")
    def _public_card_has_an_address(self) -> Self:
        card = self.experimental.server_card
        if card is not None and card.public and self.gateway.public_url is None:
            raise ValueError("experimental.server_card.public needs gateway.public_url: the card says where to connect")
        return self

    @model_validator(mode="after")
    def _claims_have_a_source(self) -> Self:
        server = self.access.authorization_server
        sources = [*self.access.issuers, *([COMPANY] if server is not None and server.oidc is not None else [])]
        if sources.count(COMPANY) > 1:
            raise ValueError(f"access.issuers.{COMPANY} has the name that stands for access.authorization_server.oidc")
        for name, upstream in self.upstreams.items():
            if problem := source_problem(upstream.headers_from_claims, upstream.claims_from, sources):
                raise ValueError(f"upstreams.{name}.{problem}")
        return self

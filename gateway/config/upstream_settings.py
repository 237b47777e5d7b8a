"""`[upstreams.NAME]`: one upstream server, its limits and what is said of its tools."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from gateway.config.base_url import BASE_URL
from gateway.config.claim_header_settings import ClaimHeaders
from gateway.config.openapi_settings import OperationSettings
from gateway.config.policy_settings import PinMode
from gateway.config.section import SecretSection, Section
from gateway.config.setting_types import Bytes, BytesOrNone, Seconds, is_url
from gateway.config.upstream_auth_settings import UpstreamAuthSettings
from gateway.core.model.json_values import is_dict
from gateway.core.model.quantities import Duration
from gateway.core.registry.entry import SERVER_AT_VERSION

Transport = Literal["stdio", "http", "sse", "auto"]

PrefixRule = Literal["always", "when-needed", "never"]

UPSTREAM_NAME = r"^[A-Za-z0-9]+(?:(?:-+|_)[A-Za-z0-9]+)*$"
"""Letters, digits, `-` and single `_`, so that `<upstream>__<tool>` splits in one way only."""
UPSTREAM_NAME_LENGTH = 40
"""Maximum characters of such a name."""
SESSION = r"^(shared|host-session|client|principal|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$"
"""The possible owners of an upstream's state."""


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

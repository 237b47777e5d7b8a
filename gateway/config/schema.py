"""The schema of mcp-gateway.toml: what may be written in it, with its defaults.

Reading files and the environment is `gateway.config.loading`; nothing here touches either.
"""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gateway.core.model.profile import ProfileSource

Seconds = Annotated[float, Field(gt=0, le=86_400)]
Bytes = Annotated[int, Field(gt=0)]
Transport = Literal["stdio", "http", "sse", "auto"]
PrefixRule = Literal["always", "when-needed", "never"]
LogFormat = Literal["text", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

OWN_NAME = "gateway"
"""The name of the gateway's own tools; no upstream may have it."""

UPSTREAM_NAME = r"^[A-Za-z0-9]+(?:(?:-+|_)[A-Za-z0-9]+)*$"
"""Letters, digits, `-` and single `_`: so that `<upstream>__<tool>` splits in one way only."""


SESSION = r"^(shared|host-session|principal|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+)$"
"""Who may own an upstream's state."""


class Section(BaseModel):
    """A table of the file: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Timeouts(Section):
    """Limits in seconds: `start` until an upstream is ready, `call` for a whole call, `idle` without any progress."""

    start: Seconds = 30.0
    """Until the upstream is ready: process started, handshake done, tools listed."""
    call: Seconds = 300.0
    """For a whole call, whatever progress it reports."""
    idle: Seconds = 120.0
    """Without any message about the call; progress starts it anew."""
    answer: Seconds = 600.0
    """For the host, and the person in front of it, to answer what the upstream asks during a call."""


class UpstreamLimits(Section):
    """What one upstream may use; 0 is no limit."""

    calls: Annotated[int, Field(ge=0)] = 100
    """Calls that run at once; others wait for their turn, in order, as long as their own limit allows."""
    memory: Annotated[int, Field(ge=0)] = 0
    """Bytes of RAM for its process and all below it (Linux, macOS); over it, it is stopped until the next call."""
    restarts: Annotated[int, Field(ge=0)] = 100
    """Starts after the first within an hour; over it, it is started again by a call, or when the hour has passed."""


class ToolTimeouts(Section):
    """The same limits for one tool; what is left out is the upstream's."""

    call: Seconds | None = None
    """For a whole call of this tool."""
    idle: Seconds | None = None
    """Without any message about the call."""


class ToolsSettings(Section):
    """Which of an upstream's tools are offered, and how. Patterns are shell globs on the upstream's own names."""

    include: tuple[str, ...] = ("*",)
    """Tools that are offered."""
    exclude: tuple[str, ...] = ()
    """Tools that are not, though included."""
    rename: dict[str, str] = Field(default_factory=dict[str, str])
    """Another name for a tool: `{ its_name = "new_name" }`."""
    describe: dict[str, str] = Field(default_factory=dict[str, str])
    """Another description for a tool."""
    timeout: dict[str, ToolTimeouts] = Field(default_factory=dict[str, ToolTimeouts])
    """Other limits for a tool."""


class UpstreamSettings(Section):
    """One upstream MCP server: either `command` (started over stdio) or `url` (Streamable HTTP or SSE)."""

    command: str | None = None
    """The program that is started: a name on the PATH, or a path (relative to the file)."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    """Its environment, beside the few variables that every program needs."""
    cwd: Path | None = None
    """The folder that it is started in, relative to the file."""
    url: str | None = None
    """The address of a server that runs already."""
    transport: Transport = "auto"
    """How to speak to it; `auto` is stdio for a command, and for a url Streamable HTTP, else SSE."""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    """HTTP headers that are sent to the url with every request."""
    timeout: Timeouts = Timeouts()
    limits: UpstreamLimits = UpstreamLimits()
    tools: ToolsSettings = ToolsSettings()
    session: Annotated[str, Field(pattern=SESSION)] | None = None
    """Whose its state is (a browser, a login): `shared`, `host-session`, `principal` or `header:NAME`.

    Left out: a host's session, or its principal and name where it has none.
    """
    session_idle: Seconds = 3_600.0
    """Seconds without a call after which a session of its own, that a host was given, is closed."""
    max_sessions: Annotated[int, Field(ge=1, le=10_000)] = 32
    """How many sessions of their own hosts may have at once."""
    idle_stop: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """Seconds without a call after which it is stopped, until the next one; its tools stay listed. 0: never."""
    files: tuple[Path, ...] = ()
    """Folders whose media, where its text names a file in them, is shown as content: a saved PDF, a screenshot."""
    enabled: bool = True
    """Whether it is connected at all."""
    max_message_bytes: Bytes = 64 * 1024 * 1024
    """The largest JSON-RPC message that is read from this upstream."""

    @model_validator(mode="after")
    def _one_way_in(self) -> "UpstreamSettings":
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command (a program to start) or url (a server to connect to)")
        if self.command is not None and self.transport not in ("auto", "stdio"):
            raise ValueError(f"transport {self.transport!r} needs a url, but command is given")
        if self.url is not None and self.transport == "stdio":
            raise ValueError("transport 'stdio' needs a command, but url is given")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://")
        return self


class GatewaySettings(Section):
    """How the gateway presents itself."""

    name: str = "mcp-gateway"
    """What the gateway calls itself towards hosts."""
    prefix: PrefixRule = "always"
    """Whether tools are offered as `<upstream>__<tool>`; `when-needed`: only where names collide."""
    profile: str | None = None
    """The profile for every host, whatever it says it is."""
    instructions: str | None = None
    """What hosts are told about the gateway as a whole."""


class HttpSettings(Section):
    """The HTTP side of `serve --http`."""

    bind: str = "127.0.0.1"
    """The address that is listened on; any but a loopback one needs a token."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8484
    """The port; 0 takes a free one."""
    token: str | None = None
    """The bearer token that hosts must send; `$MCP_GATEWAY_TOKEN` gives it too."""
    allowed_hosts: tuple[str, ...] = ()
    """Names, beside the loopback ones and `bind`, under which the gateway may be called (Host header)."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins, beside the loopback ones, that may call the gateway (Origin header)."""
    max_request_bytes: Bytes = 16 * 1024 * 1024
    """The largest request that is read from a host; on stdio, the longest line."""
    session_idle: Seconds = 1_800.0
    """Seconds without any request or open stream after which a host's session is forgotten."""


class HistorySettings(Section):
    """How much media of a conversation's tool results goes on to a model API; what does not becomes a line."""

    results: Annotated[int, Field(ge=0)] = 20
    """The newest results with media that go on in full: at least so many, fewer than twice as many. 0: all."""
    bytes: Annotated[int, Field(ge=0)] = 20_000_000
    """At most so many bytes of media together. 0: whatever the API takes."""


class ModelProxySettings(Section):
    """The proxy in front of a model API, which puts media in tool results where the model sees it."""

    to: str | None = None
    """The base url of the model API, as `https://api.openai.com/v1`; left out: `serve` runs no proxy."""
    bind: str = "127.0.0.1"
    """The address that is listened on; any but a loopback one needs a token."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8485
    """The port; 0 takes a free one."""
    token: str | None = None
    """What clients must send as `X-MCP-Gateway-Token`; their Authorization header belongs to the model API."""
    profile: str | None = None
    """The model profile; left out: chosen by the base url and the model's name."""
    allowed_hosts: tuple[str, ...] = ()
    """Names, beside the loopback ones and `bind`, under which the proxy may be called (Host header)."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins, beside the loopback ones, that may call the proxy (Origin header)."""
    max_request_bytes: Bytes = 64 * 1024 * 1024
    """The largest request that is taken from a client."""
    timeout: Seconds = 600.0
    """Seconds without a byte from the model API."""
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
    """Where content that a host cannot show is kept."""

    max_bytes: Bytes = 256 * 1024 * 1024
    """For all content together; the least recently used makes way."""
    expires: Seconds = 3_600.0
    """How many seconds content is kept after it was last stored."""


class MediaSettings(Section):
    """Limits on what is done to images and documents."""

    workers: Annotated[int, Field(ge=1, le=64)] = 2
    """How many jobs run at once, each in a process of its own."""
    timeout: Seconds = 20.0
    """Seconds for one job; then its process is killed."""
    max_pixels: Annotated[int, Field(gt=0)] = 60_000_000
    """The most pixels of an image that is decoded, read from its header beforehand."""
    max_input_bytes: Bytes = 64 * 1024 * 1024
    """The largest image that is decoded."""
    memory_bytes: Bytes = 1024 * 1024 * 1024
    """Memory of one worker process, where the platform can limit it."""


class LimitSettings(Section):
    """Limits on results."""

    result_bytes: Bytes = 64 * 1024 * 1024
    """The largest result that is taken from an upstream; larger ones are an error naming the size."""
    blocks: Annotated[int, Field(gt=0)] = 1_000
    """The most content blocks of one result."""


class LoggingSettings(Section):
    """What `serve` writes to stderr about what it does."""

    format: LogFormat = "text"
    """Lines for people, or a JSON object a line for machines."""
    level: LogLevel = "info"
    """The least that is logged; `info` has one line for each call."""
    levels: dict[str, LogLevel] = Field(default_factory=dict[str, LogLevel])
    """Another level for a part of the gateway: `{ upstream = "debug", telemetry = "warning" }`."""
    content: bool = False
    """Whether each call's line shows its arguments and result, shortened; base64 and secrets never."""

    @field_validator("levels")
    @classmethod
    def _parts_exist(cls, levels: dict[str, LogLevel]) -> dict[str, LogLevel]:
        for name in levels:
            if not name.isidentifier() or find_spec(f"gateway.{name}") is None:
                raise ValueError(f"the gateway has no part called {name!r}: name one of its packages, as 'upstream'")
        return levels


class Settings(Section):
    """The whole file."""

    gateway: GatewaySettings = GatewaySettings()
    http: HttpSettings = HttpSettings()
    model_proxy: ModelProxySettings = ModelProxySettings()
    store: StoreSettings = StoreSettings()
    media: MediaSettings = MediaSettings()
    limits: LimitSettings = LimitSettings()
    logging: LoggingSettings = LoggingSettings()
    upstreams: dict[Annotated[str, Field(pattern=UPSTREAM_NAME, max_length=40)], UpstreamSettings] = Field(
        default_factory=dict[str, UpstreamSettings]
    )
    profiles: dict[str, ProfileSource] = Field(default_factory=dict[str, ProfileSource])
    """A user's own host profiles, in the schema of the built-in ones."""

    @field_validator("upstreams")
    @classmethod
    def _own_name_is_free(cls, upstreams: dict[str, UpstreamSettings]) -> dict[str, UpstreamSettings]:
        if OWN_NAME in upstreams:
            raise ValueError(f"the name {OWN_NAME!r} is the gateway's own: give the upstream another")
        return upstreams

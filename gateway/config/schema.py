"""The schema of mcp-gateway.toml: what may be written in it, with its defaults.

Reading files and the environment is `gateway.config.loading`; nothing here touches either.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gateway.core.model.profile import ProfileSource

Seconds = Annotated[float, Field(gt=0, le=86_400)]
Bytes = Annotated[int, Field(gt=0)]
Transport = Literal["stdio", "http", "sse", "auto"]
PrefixRule = Literal["always", "when-needed", "never"]

UPSTREAM_NAME = r"^[A-Za-z0-9]+(?:(?:-+|_)[A-Za-z0-9]+)*$"
"""Letters, digits, `-` and single `_`: so that `<upstream>__<tool>` splits in one way only."""


class Section(BaseModel):
    """A table of the file: frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Timeouts(Section):
    """Limits in seconds: `start` until an upstream is ready, `call` for a whole call, `idle` without any progress."""

    start: Seconds = 30.0
    call: Seconds = 300.0
    idle: Seconds = 120.0


class ToolTimeouts(Section):
    """The same limits for one tool; what is left out is the upstream's."""

    call: Seconds | None = None
    idle: Seconds | None = None


class ToolsSettings(Section):
    """Which of an upstream's tools are offered, and how. Patterns are shell globs on the upstream's own names."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    rename: dict[str, str] = Field(default_factory=dict[str, str])
    describe: dict[str, str] = Field(default_factory=dict[str, str])
    timeout: dict[str, ToolTimeouts] = Field(default_factory=dict[str, ToolTimeouts])


class UpstreamSettings(Section):
    """One upstream MCP server: either `command` (started over stdio) or `url` (Streamable HTTP or SSE)."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict[str, str])
    cwd: Path | None = None
    url: str | None = None
    transport: Transport = "auto"
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    timeout: Timeouts = Timeouts()
    tools: ToolsSettings = ToolsSettings()
    enabled: bool = True
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
    prefix: PrefixRule = "always"
    profile: str | None = None
    """The profile for every host, whatever it says it is."""
    instructions: str | None = None


class HttpSettings(Section):
    """The HTTP side of `serve --http`."""

    bind: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8484
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    """Names, beside the loopback ones and `bind`, under which the gateway may be called (Host header)."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins, beside the loopback ones, that may call the gateway (Origin header)."""
    max_request_bytes: Bytes = 16 * 1024 * 1024


class StoreSettings(Section):
    """Where content that a host cannot show is kept."""

    max_bytes: Bytes = 256 * 1024 * 1024
    expires: Seconds = 3_600.0


class MediaSettings(Section):
    """Limits on what is done to images and documents."""

    workers: Annotated[int, Field(ge=1, le=64)] = 2
    timeout: Seconds = 20.0
    max_pixels: Annotated[int, Field(gt=0)] = 60_000_000
    max_input_bytes: Bytes = 64 * 1024 * 1024
    memory_bytes: Bytes = 1024 * 1024 * 1024


class LimitSettings(Section):
    """Limits on results."""

    result_bytes: Bytes = 64 * 1024 * 1024
    """The largest result that is taken from an upstream; larger ones are an error naming the size."""
    blocks: Annotated[int, Field(gt=0)] = 1_000


class Settings(Section):
    """The whole file."""

    gateway: GatewaySettings = GatewaySettings()
    http: HttpSettings = HttpSettings()
    store: StoreSettings = StoreSettings()
    media: MediaSettings = MediaSettings()
    limits: LimitSettings = LimitSettings()
    upstreams: dict[Annotated[str, Field(pattern=UPSTREAM_NAME, max_length=40)], UpstreamSettings] = Field(
        default_factory=dict[str, UpstreamSettings]
    )
    profiles: dict[str, ProfileSource] = Field(default_factory=dict[str, ProfileSource])
    """A user's own host profiles, in the schema of the built-in ones."""

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values (secrets included: never log this)."""
        return self.model_dump(mode="json")

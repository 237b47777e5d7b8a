"""`[gateway]` and `[logging]`: the name that hosts see, and what is logged."""

from importlib.util import find_spec
from typing import Annotated, Literal

from pydantic import Field, field_validator

from gateway.config.base_url import BASE_URL
from gateway.config.http_settings import ROOT_PATH
from gateway.config.section import Section
from gateway.config.upstream_settings import PrefixRule

LogFormat = Literal["text", "json"]

LogLevel = Literal["debug", "info", "warning", "error"]


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

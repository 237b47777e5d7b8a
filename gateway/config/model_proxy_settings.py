"""`[model_proxy]` and the histories that it repairs."""

import re
from typing import Annotated

from pydantic import Field, field_validator

from gateway.config.section import Section
from gateway.config.setting_types import Bytes, BytesOrNone, Seconds


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

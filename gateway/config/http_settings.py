"""`[http]`: the port over which hosts connect."""

import ipaddress
from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator, model_validator

from gateway.config.section import Section
from gateway.config.setting_types import Bytes, Seconds
from gateway.core.model.quantities import Duration

ROOT_PATH = r"^(/[A-Za-z0-9._~-]+)*$"


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
    """The same for one address (IPv6: one /64), except for the loopback and `trusted_proxies`."""
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

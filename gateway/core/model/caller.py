"""The host that makes a request: what it said about itself, and how the request reached us."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.core.model.grant import EVERYTHING, Grant
from gateway.core.model.revisions import MODERN_REVISIONS, REVISIONS, Era

CONSOLE_CLIENT = "mcp-gateway-console"
"""The name of the console as a client of the gateway."""


@dataclass(frozen=True)
class Caller:
    """One host, as seen on one request.

    `client_name` and `client_version` come from its clientInfo; `user_agent` from the HTTP request, if any; `profile`
    was chosen explicitly (flag, path, header); `principal` owns what the calls store: the authenticated identity, or
    else `local`. `client_info` is its clientInfo as received; `session` the host's own connection (a stdio process, an
    SSE stream, a Streamable HTTP session), None for a host without one; `headers` are those of the HTTP request, names
    in lower case; `log_level` is the minimum level of the log messages that it wants, None if it never set one. `model`
    is the model behind the host, if the host names it (Codex does, with each call). `grant` is what it may reach;
    `token` the name of the token that says so. `toolsets` are the names of those that all narrow the grant further.
    `on_stdio`: the host is a program of this machine's user, which has started the gateway. `chooses_outputs`: it is
    of the revision in which hosts choose the forms of results (`core.results.output_variants`).
    """

    revision: str = REVISIONS[0]
    client_name: str | None = None
    client_version: str | None = None
    user_agent: str | None = None
    profile: str | None = None
    principal: str = "local"
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    client_info: Mapping[str, Any] | None = None
    session: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    log_level: str | None = None
    model: str | None = None
    grant: Grant = EVERYTHING
    token: str | None = None
    toolsets: tuple[str, ...] = ()
    on_stdio: bool = False
    chooses_outputs: bool = False

    @property
    def is_modern(self) -> bool:
        """Whether the host speaks the modern era (2026-07-28)."""
        return self.revision in MODERN_REVISIONS

    @property
    def era(self) -> Era:
        """The era that the host speaks."""
        return "modern" if self.is_modern else "handshake"

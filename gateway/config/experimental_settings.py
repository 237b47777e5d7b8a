"""The table `[experimental]`: proposals for the protocol that are not part of it yet, and may change or go."""

from typing import Annotated

from pydantic import Field

from gateway.config.section import Section


class ServerCardSettings(Section):
    """A document that says what this server is and where, for clients that look before they connect (SEP-2127)."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$", min_length=3, max_length=200)]
    """The server's name: a domain of yours backwards, a slash and a name, such as `com.example/tools`."""
    title: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Its name for people."""
    description: Annotated[str, Field(min_length=1, max_length=100)] = "The tools of several MCP servers in one place"
    """What it does, in at most 100 characters."""
    public: bool = False
    """Whether anybody may read it without a token, pages of every origin included. Requires `[gateway] public_url`."""


class ExperimentalSettings(Section):
    """Proposals for the protocol that are not part of it yet: docs/experimental.md. They may change or go at any time.

    Each is off, and nothing of it is served, until it is set here.
    """

    result_variants: bool = False
    """Whether hosts may choose the forms of results at revision 2026-12-01, and servers are asked for them (SEP-3279).

    Hosts over Streamable HTTP only.
    """
    files: bool = False
    """Whether hosts may send and fetch files beside the protocol: `files/authorizeUpload`, `-Download` (SEP-2631)."""
    server_card: ServerCardSettings | None = None

    @property
    def newer_revisions(self) -> tuple[str, ...]:
        """The revisions that are spoken though they are only proposed."""
        from gateway.core.results.output_variants import REVISION

        return (REVISION,) if self.result_variants else ()

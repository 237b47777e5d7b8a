"""A simulated host: its identity, its treatment of tool results, and the media that it can show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.core.model.caller import Caller
from gateway.hosts.simulators.seen import Seen

See: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any] | None], Seen]
"""Maps a CallToolResult as JSON, and the tool as described in tools/list, to what the model gets."""


@dataclass(frozen=True)
class SimulatedHost:
    """A simulated host.

    `client_info`, `revision` and `capabilities` are what it presents to an MCP server; `user_agent` is that of its HTTP
    requests, if known. `shows` are the media types that it can show its model natively. `profile` is the one that its
    user has to name, if its identity does not lead to it. `for_people`: a person looks at the results, not a model.
    `writes_twice`: the host itself writes texts more than once, so that it is no fault of a result.
    """

    name: str
    title: str
    client_info: Mapping[str, Any]
    revision: str
    see: See
    shows: frozenset[str]
    capabilities: Mapping[str, Any] = field(default_factory=dict[str, Any])
    user_agent: str | None = None
    profile: str | None = None
    for_people: bool = False
    writes_twice: bool = False

    @property
    def caller(self) -> Caller:
        """This host as the gateway sees it."""
        return Caller(
            revision=self.revision,
            client_name=str(self.client_info["name"]),
            client_version=str(self.client_info["version"]),
            user_agent=self.user_agent,
            capabilities=self.capabilities,
            profile=self.profile,
        )

    def can_show(self, media_type: str) -> bool:
        """Whether this host can show its model content of this media type natively."""
        return media_type in self.shows

    @property
    def shows_images(self) -> bool:
        """Whether this host can show its model images at all."""
        return any(media_type.startswith("image/") for media_type in self.shows)


RASTER = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

SDK_CLIENT: Mapping[str, Any] = {"name": "mcp", "version": "0.1.0"}
"""The clientInfo of the MCP Python SDK, for hosts built on it that set none of their own."""


def nameless_host(
    name: str,
    title: str,
    see: See,
    *,
    profile: str,
    shows: frozenset[str] = frozenset(),
    revision: str = "2025-11-25",
    writes_twice: bool = False,
) -> SimulatedHost:
    """Return a host that introduces itself as the MCP Python SDK, so that its user has to name its profile."""
    return SimulatedHost(
        name=name,
        title=title,
        client_info=SDK_CLIENT,
        revision=revision,
        see=see,
        shows=shows,
        profile=profile,
        writes_twice=writes_twice,
    )

"""Protocol for what a toolset needs of a gateway, in process or over HTTP."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.content.store import ContentStore
from gateway.core.model.wire import WireObject

PROFILE = "agent-loop"
"""The built-in profile for programs that lower results themselves."""


@dataclass(frozen=True)
class StoredContent:
    """Content that was put into a gateway. The model passes `handle` to tools. `size` is in bytes."""

    handle: str
    media_type: str
    size: int
    kind: str
    """`image`, `audio`, `video`, `document`, `3d`, `cad` or `other`."""
    name: str | None = None


@dataclass(frozen=True)
class Offered:
    """One tool that the gateway offers: its description from tools/list, its provider, and its name there."""

    tool: WireObject
    provider: str
    own_name: str

    @property
    def name(self) -> str:
        """The name under which the gateway offers it."""
        return str(self.tool["name"])


@dataclass(frozen=True)
class Offer:
    """The tools, all providers, and the providers that are not available now, each with its cause."""

    tools: Sequence[Offered]
    providers: Collection[str]
    absent: Sequence[str] = ()


class Source(Protocol):
    """A running gateway."""

    async def offer(self, providers: Collection[str] | None) -> Offer:
        """Return what is offered now. Wait for those of `providers` (None: of all) that are still starting."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> WireObject:
        """Call a tool by its offered name and return the raw CallToolResult. Raises GatewayError."""
        ...

    @property
    def store(self) -> ContentStore:
        """The store in which the gateway keeps content. Raises ConfigError if it is not in this process."""
        ...

    async def put(self, content: bytes, media_type: str | None, name: str | None) -> StoredContent:
        """Keep content for the gateway's tools. Raises GatewayError."""
        ...

"""What a toolset needs of a gateway, in process or over HTTP."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.content.store import ContentStore
from gateway.core.model.wire import WireObject

PROFILE = "agent-loop"
"""The built-in profile of programs that lower results themselves."""


@dataclass(frozen=True)
class StoredContent:
    """Content that was put into a gateway: `handle` is what the model passes to tools. `size` in bytes."""

    handle: str
    media_type: str
    size: int
    kind: str
    """`image`, `audio`, `video`, `document`, `3d`, `cad` or `other`."""
    name: str | None = None


@dataclass(frozen=True)
class Offered:
    """One tool that the gateway offers: as tools/list describes it, the provider it is of, and its name there."""

    tool: WireObject
    provider: str
    own_name: str

    @property
    def name(self) -> str:
        """The name that the gateway offers it by."""
        return str(self.tool["name"])


@dataclass(frozen=True)
class Offer:
    """The tools, the providers that there are, and those of them that are not there now, each with its cause."""

    tools: Sequence[Offered]
    providers: Collection[str]
    absent: Sequence[str] = ()


class Source(Protocol):
    """A gateway that is running."""

    async def offer(self, providers: Collection[str] | None) -> Offer:
        """What is offered now; waits for those of `providers` (None: of all) that are still starting."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> WireObject:
        """The raw CallToolResult of a tool, by the name that it is offered by. Raises GatewayError."""
        ...

    @property
    def store(self) -> ContentStore:
        """Where the gateway keeps content. Raises ConfigError where it is not in this process."""
        ...

    async def put(self, content: bytes, media_type: str | None, name: str | None) -> StoredContent:
        """Keep content for the gateway's tools. Raises GatewayError."""
        ...

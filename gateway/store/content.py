"""What every store is: the Protocol, and what is known of a piece of content without reading it."""

from dataclasses import dataclass
from typing import Protocol

from gateway.store.handles import URI_SCHEME


@dataclass(frozen=True)
class Stored:
    """What is known of stored content: `size` in bytes, `sha256` in hex, `expires_at` on the store's clock."""

    handle: str
    media_type: str
    name: str | None
    size: int
    sha256: str
    kind: str
    """`image`, `audio`, `video`, `text`, `document` or `other`."""
    expires_at: float

    @property
    def uri(self) -> str:
        """The content as an MCP resource."""
        return f"{URI_SCHEME}{self.handle}"


class ContentStore(Protocol):
    """Content behind handles. Each piece belongs to one owner; to every other owner it does not exist.

    Wherever a handle is taken, its `content://` uri will do, and so will the handle as a model may have spelled it
    (`handle_from`). Each method that takes one raises UnknownHandle when the owner never had it (or deleted it), and
    ExpiredHandle when it was kept and is gone: expired, or evicted to make room.
    """

    async def put(self, content: bytes, *, owner: str, media_type: str, name: str | None = None) -> Stored:
        """Keep `content`. The same bytes of the same owner keep their handle and type, and live anew.

        Raises ContentTooLarge when it is larger than the whole store.
        """
        ...

    async def read(self, handle: str, *, owner: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` up to `end` (None: the last); what lies outside of the content is left out."""
        ...

    async def metadata(self, handle: str, *, owner: str) -> Stored:
        """What is known of the content."""
        ...

    async def delete(self, handle: str, *, owner: str) -> None:
        """Forget the content now."""
        ...

    async def list(self, *, owner: str) -> tuple[Stored, ...]:
        """Everything of this owner, the oldest first."""
        ...

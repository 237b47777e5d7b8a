"""The interface for making links to stored content, for code that does not depend on the HTTP server."""

from typing import Protocol

from gateway.content.store import Stored


class ContentLinker(Protocol):
    """Makes links to stored content (`gateway.content.links.links.Links`)."""

    @property
    def is_served(self) -> bool:
        """Whether links can be made: the gateway has an HTTP server."""
        ...

    def link(self, stored: Stored, owner: str) -> str | None:
        """Return a link with which anybody can open this content; None if no server would answer it."""
        ...

"""What makes links, as everything below the HTTP side sees it."""

from typing import Protocol

from gateway.content.store import Stored


class ContentLinker(Protocol):
    """Makes links to stored content (`gateway.content.links.links.Links`)."""

    @property
    def is_served(self) -> bool:
        """Whether links are made: the gateway has an HTTP side."""
        ...

    def link(self, stored: Stored, owner: str) -> str | None:
        """A link that opens this content of its owner for whoever has it; None where nobody would answer to it."""
        ...

"""What has changed behind the gateway, and whom it concerns."""

from typing import NamedTuple

from gateway.core.model.tool_facts import ToolFacts

UPDATED = "updated:"
"""The beginning of the kind of a change of one resource; its URI follows."""


class Change(NamedTuple):
    """A change of a list, or of a resource."""

    kind: str
    """`tools`, `prompts` or `resources` for a list, or `updated:<uri>`."""
    upstream: str | None = None
    """The upstream that it is of; None for one that concerns whoever has any."""
    principal: str | None = None
    """The principal whom alone it concerns; None if it concerns everybody who reaches the upstream."""
    tools: frozenset[ToolFacts] | None = None
    """The tools of which one at least has to exist for whomever it concerns; None if that does not matter."""

    @property
    def uri(self) -> str | None:
        """The URI of the resource that has changed; None for a list."""
        return self.kind.removeprefix(UPDATED) if self.kind.startswith(UPDATED) else None

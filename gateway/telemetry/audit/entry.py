"""One request in the audit trail: filled in while it runs, written when it has ended."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any


class AuditEntry:
    """A request, to be entered while it runs. This one is not written anywhere: nothing is audited."""

    def routed(
        self, upstream: str, tool: str = "", schema: Callable[[], Any] | None = None, *, audience: str = ""
    ) -> None:
        """Record the upstream, and for a tool its name there, its schema, and who gets its result, if not a model.

        Unless something else is decided, this is a request that the caller may make.
        """

    def decided(self, verdict: str, rule: str) -> None:
        """Record the decision, and the rule that made it."""

    def returned(self, result: Mapping[str, Any]) -> None:
        """Record what the upstream returned."""

    def turned_down(self, cause: str) -> None:
        """Record that the gateway answers with an error in place of the upstream, which is not asked, and why."""

    def answered_from_cache(self) -> None:
        """Record that the result is a kept one: the upstream was not asked."""

    def shown(self, result: Mapping[str, Any]) -> None:
        """Record what the host gets."""

    def follow_up(self) -> "AuditEntry":
        """Return another entry for the same request, which goes on although it has been answered; not to be entered."""
        return self

    async def __aenter__(self) -> "AuditEntry":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


NOT_AUDITED = AuditEntry()

"""What a caller may reach: its upstreams and tools, and how much it may ask for.

Standard library only: a host on stdio is answered before anything else is loaded.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from gateway.core.model.toolset_scope import SEPARATOR, ToolsetScope


class Quota(NamedTuple):
    """How much may be asked for; None is no limit. A call is `tools/call`; bytes and tokens are those of results."""

    requests_per_minute: int | None = None
    calls_at_once: int | None = None
    calls_per_minute: int | None = None
    calls_per_day: int | None = None
    bytes_per_day: int | None = None
    picture_tokens_per_day: int | None = None


UNLIMITED = Quota()


class Grant(NamedTuple):
    """Shell globs: `upstreams` on upstreams' names, `tools` on `upstream__tool`. `calls_per_minute` counts tools/call.

    The gateway's own tools are not restricted: they reach nothing but what the caller reaches. `quota` has limits of
    this token's own, in place of those for its principal. `others` are grants that count as well. `scoped` has patterns
    of tools that exist for the caller, but need scopes that its token lacks.
    """

    upstreams: tuple[str, ...] = ("*",)
    tools: tuple[str, ...] = ("*",)
    calls_per_minute: int | None = None
    quota: Quota = UNLIMITED
    closed: frozenset[str] = frozenset()
    """Upstreams whose resources, prompts and completions the policy withholds."""
    others: tuple["Grant", ...] = ()
    scoped: tuple[tuple[str, tuple[str, ...]], ...] = ()
    within: tuple[ToolsetScope, ...] = ()
    """Toolsets: only what is in all of them exists for the caller, whatever else is granted."""

    @property
    def own_quota(self) -> Quota:
        """The token's own limits, `calls_per_minute` among them."""
        if self.calls_per_minute is None:
            return self.quota
        return self.quota._replace(calls_per_minute=self.calls_per_minute)

    @property
    def reaches_all_upstreams(self) -> bool:
        """Whether no upstream is withheld."""
        if self.within:
            return False
        return "*" in self.upstreams or any(other.reaches_all_upstreams for other in self.others)

    @property
    def reaches_all_tools(self) -> bool:
        """Whether no tool of the upstreams is withheld."""
        if self.within:
            return False
        if not self.others:
            return "*" in self.tools
        return any("*" in one.upstreams and "*" in one.tools for one in (self, *self.others))

    def reaches(self, upstream: str) -> bool:
        """Whether the upstream exists for the caller."""
        if not all(toolset.has(upstream) for toolset in self.within):
            return False
        return _matches(self.upstreams, upstream) or any(other.reaches(upstream) for other in self.others)

    def reaches_content(self, upstream: str) -> bool:
        """Whether the resources, prompts and completions of the upstream exist for the caller."""
        return upstream not in self.closed and self.reaches(upstream)

    def reaches_prompt(self, upstream: str, prompt: str) -> bool:
        """Whether a prompt of the upstream, by its own name, exists for the caller."""
        return self.reaches_content(upstream) and all(one.has_prompt(upstream, prompt) for one in self.within)

    def reaches_resource(self, upstream: str, uri: str) -> bool:
        """Whether a resource of the upstream exists for the caller, without anything that has named it."""
        return self.reaches_content(upstream) and all(one.has_resource(upstream, uri) for one in self.within)

    def reaches_tool(self, upstream: str, tool: str) -> bool:
        """Whether a tool of the upstream, by its own name, exists for the caller."""
        if not all(toolset.has_tool(upstream, tool) for toolset in self.within):
            return False
        if _matches(self.upstreams, upstream) and _matches(self.tools, f"{upstream}{SEPARATOR}{tool}"):
            return True
        return any(other.reaches_tool(upstream, tool) for other in self.others)

    def missing_scopes(self, upstream: str, tool: str) -> tuple[str, ...]:
        """Return the scopes that a call of this tool needs besides those that the caller's token has."""
        name = f"{upstream}{SEPARATOR}{tool}"
        needed = (scopes for pattern, scopes in self.scoped if fnmatchcase(name, pattern))
        return tuple(sorted({scope for scopes in needed for scope in scopes}))


EVERYTHING = Grant()
"""No restriction: a host on stdio, on the loopback interface without a token, or with `[http] token`."""


def _matches(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

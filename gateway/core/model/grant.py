"""What a caller may reach: its upstreams and tools, and how often it may call.

Standard library only: a host on stdio is answered before anything else is loaded.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

SEPARATOR = "__"
"""Between an upstream's name and a tool's own name in a pattern, whatever names the tools are offered under."""


class Grant(NamedTuple):
    """Shell globs: `upstreams` on upstreams' names, `tools` on `upstream__tool`. `calls_per_minute` counts tools/call.

    The gateway's own tools are not restricted: they reach nothing but what the caller reaches.
    """

    upstreams: tuple[str, ...] = ("*",)
    tools: tuple[str, ...] = ("*",)
    calls_per_minute: int | None = None

    @property
    def reaches_all_upstreams(self) -> bool:
        """Whether no upstream is withheld."""
        return "*" in self.upstreams

    @property
    def reaches_all_tools(self) -> bool:
        """Whether no tool of the upstreams is withheld."""
        return "*" in self.tools

    def reaches(self, upstream: str) -> bool:
        """Whether the upstream exists for the caller."""
        return _matches(self.upstreams, upstream)

    def reaches_tool(self, upstream: str, tool: str) -> bool:
        """Whether a tool of the upstream, by its own name, exists for the caller."""
        return self.reaches(upstream) and _matches(self.tools, f"{upstream}{SEPARATOR}{tool}")


EVERYTHING = Grant()
"""No restriction: a host on stdio, on the loopback interface without a token, or with `[http] token`."""


def _matches(patterns: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

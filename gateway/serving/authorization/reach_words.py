"""What somebody reaches, in words for the approval page. Pure."""

from collections.abc import Iterable, Sequence

from gateway.core.model.grant import SEPARATOR, Grant


def reach_in_words(grant: Grant, upstreams: Iterable[str], toolset: str | None = None) -> Sequence[str]:
    """Return a line for each upstream that the grant reaches, and one for the toolset that narrows it."""
    reached = [f"{name}: {_tools(grant, name)}" for name in upstreams if grant.reaches(name) and _tools(grant, name)]
    return reached if toolset is None else [*reached, f"of all this, only what is in the toolset {toolset}"]


def _tools(grant: Grant, upstream: str) -> str:
    """Return which of an upstream's tools the grant may reach; empty if none, whatever tools it has."""
    if grant.reaches_all_tools:
        return "all tools and everything to read"
    patterns = [pattern for pattern in grant.tools if _may_match(pattern, upstream)]
    own = [pattern.partition(SEPARATOR)[2] or pattern for pattern in patterns]
    return f"the tools {', '.join(own)}, and everything to read" if own else "no tools, but everything to read"


def _may_match(pattern: str, upstream: str) -> bool:
    """Whether a pattern for tools may match one of this upstream."""
    name, separator, _ = pattern.partition(SEPARATOR)
    return Grant(upstreams=(name if separator else pattern,)).reaches(upstream) or (
        not separator and Grant(upstreams=(pattern,)).reaches(f"{upstream}{SEPARATOR}")
    )

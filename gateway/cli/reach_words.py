"""What a new token or person reaches, in words: whoever is given nothing in particular reaches everything."""

from collections.abc import Sequence

from gateway.core.fact_words import plain


def reach_words(upstreams: Sequence[str] | None, tools: Sequence[str] | None) -> str:
    """Return what the options `--upstream` and `--tool` let somebody reach, and how to limit it if that is all."""
    if not upstreams and not tools:
        return "all servers and all of their tools, now and later: --upstream and --tool limit that"
    servers = "all servers" if not upstreams else f"the servers {_listed(upstreams)}"
    return f"{servers}, of them {'all tools' if not tools else f'the tools {_listed(tools)}'}, and nothing else"


def _listed(globs: Sequence[str]) -> str:
    return ", ".join(plain(glob, 100) for glob in globs)

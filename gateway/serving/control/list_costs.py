"""What the list of tools of each upstream costs a model, in tokens: counted once for each list."""

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.tokens import list_tokens
from gateway.core.tools.catalogue.repair import unusable

_counted: dict[str, tuple[Sequence[Any], int]] = {}
"""The last list of each upstream, with its tokens: an upstream's list is another object whenever it changes."""
_MOST = 1_000


def list_cost(upstream: str, tools: Sequence[Mapping[str, Any]]) -> int:
    """Return the tokens of an upstream's tools as models read them; those that no host is offered cost nothing."""
    known = _counted.get(upstream)
    if known is None or known[0] is not tools:
        if len(_counted) >= _MOST:
            _counted.clear()
        known = _counted[upstream] = tools, list_tokens(tool for tool in tools if unusable(tool) is None)
    return known[1]

"""Cache hints for a merged list: how long hosts may keep it (`ttlMs`), and its `_meta`."""

from typing import Any, Literal

from gateway.core.model.caller import Caller
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.tools.catalogue.hints import NO_HINT, merge_hints
from gateway.routing.ports import UpstreamPort, UpstreamsPort
from gateway.upstream import UpstreamState

ListName = Literal["tools", "resources", "templates", "prompts"]

_CAPABILITIES = {"tools": "tools", "resources": "resources", "templates": "resources", "prompts": "prompts"}


def hints_of(upstreams: UpstreamsPort, name: ListName, caller: Caller, *, own: bool = False) -> dict[str, Any]:
    """Return `ttlMs` and `_meta` for a merged list, each only where it has a value.

    The list may be kept for the shortest time that any contributing upstream allows, and not at all if one of them is
    not ready, is of the handshake era, or allows no caching. `own`: the list also has the gateway's own content.
    """
    members = [upstreams[each] for each in upstreams]
    hints = [_hint(each, name, caller) for each in members if _has_part(each, name)]
    return merge_hints([*hints, NO_HINT] if own else hints)


def _has_part(upstream: UpstreamPort, name: ListName) -> bool:
    """Whether the upstream lists anything of this kind, or may do so once it is connected."""
    if upstream.state is UpstreamState.DISABLED:
        return False
    unknown = not upstream.capabilities and upstream.state is not UpstreamState.READY
    return unknown or _CAPABILITIES[name] in upstream.capabilities


def _hint(upstream: UpstreamPort, name: ListName, caller: Caller) -> dict[str, Any]:
    hint = upstream.lists_for(caller).hints.get(name, NO_HINT)
    lasting = upstream.state is UpstreamState.READY and upstream.revision in MODERN_REVISIONS
    return {**hint, **({} if lasting else {"ttlMs": None})}

"""What is said of a merged list as a whole: for how long it may be kept, and its `_meta`."""

from typing import Any, Literal

from gateway.core.model.caller import Caller
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.tools.catalogue.hints import NO_HINT, merge_hints
from gateway.routing.ports import UpstreamPort, UpstreamsPort
from gateway.upstream import UpstreamState

ListName = Literal["tools", "resources", "templates", "prompts"]

_CAPABILITIES = {"tools": "tools", "resources": "resources", "templates": "resources", "prompts": "prompts"}


def hints_of(upstreams: UpstreamsPort, name: ListName, caller: Caller, *, own: bool = False) -> dict[str, Any]:
    """`ttlMs` and `_meta` of a merged list, each only where there is something to say.

    It may be kept for as long as the least of those that have part in it allows, and not at all as soon as one of them
    is not ready, is of the handshake era, or allows nothing; `own`: the gateway's own content is in the list, too.
    """
    members = [upstreams[each] for each in upstreams]
    hints = [_hint(each, name, caller) for each in members if _has_part(each, name)]
    return merge_hints([*hints, NO_HINT] if own else hints)


def _has_part(upstream: UpstreamPort, name: ListName) -> bool:
    """Whether it lists anything of the kind, or may do so as soon as it is there."""
    if upstream.state is UpstreamState.DISABLED:
        return False
    unknown = not upstream.capabilities and upstream.state is not UpstreamState.READY
    return unknown or _CAPABILITIES[name] in upstream.capabilities


def _hint(upstream: UpstreamPort, name: ListName, caller: Caller) -> dict[str, Any]:
    hint = upstream.lists_for(caller).hints.get(name, NO_HINT)
    lasting = upstream.state is UpstreamState.READY and upstream.revision in MODERN_REVISIONS
    return {**hint, **({} if lasting else {"ttlMs": None})}

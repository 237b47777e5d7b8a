"""What shaping one result may reach: the upstream that its links lead back to, and the folders of the host."""

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import anyio

from gateway.bridging.bridge import Bridge
from gateway.core.model.caller import Caller
from gateway.core.model.profile import Profile
from gateway.errors import HostRefused
from gateway.routing.ports import AnUpstream
from gateway.shaping import Reach
from gateway.upstream import Host
from gateway.upstream.asking import ROOTS

_ROOTS_SECONDS = 5.0
_MOST_ROOTS = 20


def reach(bridge: Bridge, upstream: AnUpstream | None, profile: Profile, caller: Caller, host: Host | None) -> Reach:
    """What belongs to a result of `upstream` for this host; None: a result of the gateway's own."""
    folders = partial(_folders, profile, caller, host)
    if upstream is None:
        return Reach(folders=folders)

    async def read(uri: str) -> Mapping[str, Any]:
        timeout = upstream.settings.timeout
        return await bridge.request(upstream, "resources/read", {"uri": uri}, timeout=timeout, caller=caller, host=host)

    return Reach(read, folders)


async def _folders(profile: Profile, caller: Caller, host: Host | None) -> tuple[str, ...]:
    """The host's roots as uris; none where it tells none, or cannot be asked while a call of it runs."""
    if host is None or caller.is_modern or "roots" not in caller.capabilities or "roots" in profile.features.broken:
        return ()
    result: Mapping[str, Any] = {}
    with anyio.move_on_after(_ROOTS_SECONDS):
        try:
            result = await host.ask(ROOTS, {})
        except HostRefused:
            return ()
    roots: Any = result.get("roots")
    listed = cast("list[Any]", roots)[:_MOST_ROOTS] if isinstance(roots, list) else []
    uris = [cast("dict[str, Any]", root).get("uri") for root in listed if isinstance(root, dict)]
    return tuple(uri for uri in uris if isinstance(uri, str))

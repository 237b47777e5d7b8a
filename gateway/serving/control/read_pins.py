"""Pins that a command has changed: a running gateway reads them again, and tells its hosts of the changed lists."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.routing import Router


def read_pins_again(router: "Router", request: Mapping[str, Any]) -> dict[str, Any]:
    """Rebuild the lists of tools with the pins of now: of the upstream that the request names."""
    name = request.get("upstream")
    known = [upstream for upstream in router.upstreams if upstream == name]
    for upstream in known:
        router.upstream_changed(upstream, "tools")
    return {"upstreams": known}

"""Scopes that tools need, for callers whose tokens come from an authorization server."""

from gateway.core.model.caller import Caller
from gateway.core.tools.catalogue import OWN, Route
from gateway.errors import ScopeMissing


def check_scopes(route: Route, caller: Caller) -> None:
    """Raise `ScopeMissing` if the caller's token lacks a scope that calls over this route need."""
    missing = caller.grant.missing_scopes(route.upstream, route.tool)
    if missing and route.upstream != OWN:
        scopes = f"{'scope' if len(missing) == 1 else 'scopes'} {', '.join(missing)}"
        raise ScopeMissing(
            f"this tool needs the {scopes}, which the token of this host does not have",
            missing,
            remedy="connect the gateway again in the host's settings, and allow what it asks for",
        )

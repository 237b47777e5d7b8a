"""Whose state an upstream's session holds: a browser, a login, a working folder."""

from gateway.core.model.caller import Caller

SHARED = "shared"

_HEADER = "header:"


def owner_of(rule: str | None, caller: Caller) -> str:
    """The owner of the state that a caller's calls act on.

    `rule` is what the configuration says of the upstream. `shared`: one for all; `principal`: whoever is calling;
    `client`: the host by its name, whatever connection it comes over; `header:NAME`: what an HTTP header says, within
    the principal, so that nobody can name another's; `host-session`, and without a rule: the host's own connection
    (`host_of`). A host without the header is known by its principal, its name and its profile.
    """
    if rule == "shared":
        return SHARED
    if rule == "principal":
        return f"principal {caller.principal}"
    if rule == "client":
        return client_of(caller)
    if rule is not None and rule.startswith(_HEADER):
        value = caller.headers.get(rule.removeprefix(_HEADER).lower())
        return f"header {caller.principal!r} {value}" if value else client_of(caller)
    return host_of(caller)


def host_of(caller: Caller) -> str:
    """What tells one host from another: its own connection, or where it has none (2026-07-28 over HTTP), its client."""
    return owner_by_session(caller.session) if caller.session is not None else client_of(caller)


def owner_by_session(session: str) -> str:
    """A host's own connection as an owner."""
    return f"session {session}"


def client_of(caller: Caller) -> str:
    """A host as far as it is known without a session: its principal, its name, and the profile chosen explicitly.

    Many may have one token and one name; the path that each is given (`/mcp/<profile>`) tells them apart as well.
    """
    return f"client {caller.principal!r} {caller.profile!r} {caller.client_name or ''}"

"""Owners of the state in an upstream's session, such as a browser, a login, or a working folder."""

from gateway.core.model.caller import Caller

SHARED = "shared"

_HEADER = "header:"


def owner_of(rule: str | None, caller: Caller) -> str:
    """Return the owner of the state that a caller's calls act on.

    `rule` is the upstream's setting. `shared`: one owner for all; `principal`: the caller's principal; `client`: the
    host by its name, over any connection; `header:NAME`: the value of an HTTP header, within the principal, so that
    nobody can name an owner of another principal; `host-session`, and without a rule: the host's own connection
    (`host_of`). A host that does not send the header is identified by its principal, its name and its profile.
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
    """Return the identity of a host: its own connection or, without one (2026-07-28 over HTTP), its client."""
    return owner_by_session(caller.session) if caller.session is not None else client_of(caller)


def owner_by_session(session: str) -> str:
    """Return the owner for a host's own connection."""
    return f"session {session}"


def client_of(caller: Caller) -> str:
    """Identify a host without a session: by its principal, its name, and the profile chosen explicitly.

    Several hosts may share a token and a name; the path that each uses (`/mcp/<profile>`) also tells them apart.
    """
    return f"client {caller.principal!r} {caller.profile!r} {caller.client_name or ''}"

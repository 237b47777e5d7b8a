"""Logins at the command line's request: one that another process has completed, or one that has to end."""

from collections.abc import Mapping
from typing import Any

from gateway.errors import InvalidRequest
from gateway.serving.control.status_report import Running


async def answer(running: Running, request: Mapping[str, Any]) -> dict[str, Any]:
    """Use a login that was given (`login`), or end one (`logout`), of `principal` for `upstream`.

    Raises:
        InvalidRequest: there is no such upstream.
        UpstreamError: the login cannot be ended.
    """
    upstream, principal = request.get("upstream"), request.get("principal")
    if not isinstance(upstream, str) or not isinstance(principal, str):
        raise InvalidRequest("a login has an upstream and a principal")
    if request.get("command") == "login":
        await running.logged_in(upstream, principal)
    else:
        await running.log_out(upstream, principal)
    return {}

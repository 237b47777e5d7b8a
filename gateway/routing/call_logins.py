"""Logging in to an upstream during a call: the host opens the link if it can, else the model passes it on."""

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from gateway.config.logins import may_take_logins
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import WireObject, text_result
from gateway.core.own_names import LOGIN_TOOL
from gateway.core.wording import log_in_at, logged_in, login_message
from gateway.errors import FailureCode, HostRefused, InvalidRequest, LoginOffered, UpstreamError
from gateway.routing.around_upstream import AroundUpstream
from gateway.routing.ports import LoginOffer, LoginsPort, UpstreamsPort
from gateway.routing.visible_upstreams import visible
from gateway.upstream import Host, RequestContext, UpstreamState
from gateway.upstream.bridging.bridge import BridgedUpstream
from gateway.upstream.bridging.input_requests import can_answer
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.host_requests import ELICITATION

_COMPLETE = "notifications/elicitation/complete"

_LOGINS = 2
"""How often one call may wait for a login: the second time for scopes that the upstream asks for then."""


class CallLogins:
    """Wraps upstreams so that callers without a login are asked for it. Without `logins`, they are only told."""

    def __init__(self, upstreams: UpstreamsPort, logins: LoginsPort | None) -> None:
        self._upstreams = upstreams
        self._logins = logins

    def around(self, upstream: BridgedUpstream) -> BridgedUpstream:
        """Return the upstream with logins during its requests, if it may want any."""
        if self._logins is None or not may_take_logins(upstream.settings):
            return upstream
        return _WithLogin(upstream, self._logins)

    def tools(self, caller: Caller) -> tuple[WireObject, ...]:
        """The tool `gateway_login`, if an upstream waits for a login of the caller, who knows none of its tools."""
        if self._logins is None:
            return ()
        upstreams = visible(self._upstreams, caller)
        waiting = [name for name in upstreams if upstreams[name].state is UpstreamState.LOGIN]
        return (_declared(waiting),) if waiting else ()

    def asked(self, arguments: object, caller: Caller) -> BridgedUpstream:
        """Return what answers a call of `gateway_login`, as an upstream.

        Raises:
            InvalidRequest: the arguments name no upstream of the caller.
        """
        name = as_object(arguments).get("upstream")
        upstreams = visible(self._upstreams, caller)
        if name not in tuple(upstreams):
            named = f"no upstream is named {plain(name, 100)!r}" if isinstance(name, str) else "upstream must be a name"
            raise InvalidRequest(named, remedy="list the tools again: their schema has the names")
        return self.around(_Connecting(upstreams[str(name)]))


class _WithLogin(AroundUpstream):
    def __init__(self, upstream: BridgedUpstream, logins: LoginsPort) -> None:
        super().__init__(upstream)
        self._logins = logins

    async def request(
        self, method: str, params: Mapping[str, Any], context: RequestContext, timeout: CallLimits | None = None
    ) -> dict[str, Any]:
        for _ in range(_LOGINS):
            try:
                return await self._upstream.request(method, params, context, timeout)
            except UpstreamError as error:
                if error.failure.code is not FailureCode.LOGIN_REQUIRED:
                    raise
                offer = await self._logins.offer(self.name, context.caller.principal)
                if offer is None:
                    raise
                if not await self._logged_in(offer, context):
                    raise LoginOffered(self.name, remedy=log_in_at(offer.url)) from error
        return await self._upstream.request(method, params, context, timeout)

    async def _logged_in(self, offer: LoginOffer, context: RequestContext) -> bool:
        """Have the host open the link, and wait for the login. Return False if it cannot, or nobody logs in."""
        host = context.host
        if host is None or not can_answer(context.caller, ELICITATION, {"mode": "url"}):
            return False
        patience, ident = self.settings.timeout.answer, f"login-{secrets.token_urlsafe(12)}"
        if not await self._accepted(host, offer, ident, math.inf if host.bounds_waiting else patience):
            return False
        done = await offer.wait(patience)
        await host.tell(_COMPLETE, {"elicitationId": ident})
        return done

    async def _accepted(self, host: Host, offer: LoginOffer, ident: str, patience: float) -> bool:
        message = login_message(self.name)
        params = {"mode": "url", "message": message, "url": offer.url, "elicitationId": ident}
        try:
            with anyio.fail_after(patience):
                answer = await host.ask(ELICITATION, params)
        except (HostRefused, TimeoutError):
            return False
        return answer.get("action") == "accept"


class _Connecting(AroundUpstream):
    """Answers a call of `gateway_login` once the caller can reach the upstream."""

    async def request(
        self, method: str, params: Mapping[str, Any], context: RequestContext, timeout: CallLimits | None = None
    ) -> dict[str, Any]:
        del method, params
        await self._upstream.request("tools/list", {}, context, timeout)
        return text_result(logged_in(self.name))


def _declared(names: Sequence[str]) -> WireObject:
    described = (
        "Gives the user a link to log in to one of these servers, whose tools cannot be listed before: "
        f"{', '.join(names)}. Call it when the user asks for something that such a server may be able to do."
    )
    server = {"type": "string", "enum": list(names), "description": "The server to log in to."}
    return {
        "name": LOGIN_TOOL,
        "title": "Log in to a server",
        "description": described,
        "inputSchema": {
            "type": "object",
            "properties": {"upstream": server},
            "required": ["upstream"],
            "additionalProperties": False,
        },
        "annotations": {
            "title": "Log in to a server",
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": True,
        },
    }

"""Pass requests between a host and an upstream, whichever era each of them speaks."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object
from gateway.core.model.wire import INTERNAL_ERROR
from gateway.errors import InvalidRequest, UpstreamRefused
from gateway.system.background_tasks import background_tasks
from gateway.upstream.bridging.input_requests import INPUT_REQUIRED, RETRYABLE
from gateway.upstream.bridging.input_rounds import drive
from gateway.upstream.bridging.signed_state import MARK, PARKED, Seal, parked_at, parked_call
from gateway.upstream.bridging.suspended_calls import SuspendedCall, SuspendedCalls
from gateway.upstream.connection.client_identity import identity_of
from gateway.upstream.connection.deadlines import CallLimits
from gateway.upstream.connection.request_context import RequestContext

CARRIED_SECONDS = 86_400.0
"""How long a host may keep the state of a modern upstream; the upstream's own limit may be shorter."""

_UPSTREAM = "upstream"


class BridgedUpstream(Protocol):
    """The upstream that a request goes to, such as `gateway.upstream.Upstream`."""

    @property
    def name(self) -> str: ...
    @property
    def settings(self) -> UpstreamSettings: ...
    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext,
        timeout: CallLimits | None = None,
    ) -> dict[str, Any]: ...


class Bridge:
    """Passes requests to upstreams, and presents an upstream's requests for input to the host in the host's own era.

        host        upstream
        handshake   handshake   the upstream's requests go to the host unchanged
        handshake   modern      `input_required` is answered by asking the host (`input_rounds`)
        modern      modern      `input_required` goes to the host; only its `requestState` is signed
        modern      handshake   the upstream's requests become `input_required` (`suspended_calls`)

    The era of an upstream need not be known in advance. Without `suspended`, an upstream of the handshake era cannot
    ask a modern host.
    """

    def __init__(self, suspended: SuspendedCalls | None = None, seal: Seal | None = None) -> None:
        self._suspended = suspended
        self._seal = seal or Seal()
        self._replica: str | None = None

    def join(self, replica: str, key: Callable[[], bytes]) -> None:
        """Be one of several replicas, which verify one another's states by a key that they have together."""
        self._replica, self._seal.key = replica, key

    async def request(
        self,
        upstream: BridgedUpstream,
        method: str,
        params: Mapping[str, Any],
        context: RequestContext,
        timeout: CallLimits | None = None,
    ) -> dict[str, Any]:
        """Return the upstream's raw result, which may ask a modern host for input.

        `timeout` replaces the upstream's own limits.

        Raises what `upstream.request` raises, InvalidRequest for a `requestState` that is not this caller's, and
        UpstreamRefused if a request that is part of another needs input.
        """

        send = partial(upstream.request, method, context=context, timeout=timeout)
        caller, host = context.caller, context.host
        if context.is_part and (host is None or caller.is_modern):
            return _complete(upstream.name, method, await send(params))
        if host is None or method not in RETRYABLE:
            return await send(params)
        patience = upstream.settings.timeout.answer
        if not caller.is_modern:
            first = await send(params)
            return await drive(first, send, params, caller, host, upstream=upstream.name, patience=patience)
        params, suspended_id = self._opened(upstream.name, method, params, caller)
        if suspended_id is not None and self._suspended is not None:
            answers = _answers(params)
            result, waiting = await self._suspended.resume(suspended_id, answers, context, patience)
        elif self._suspended is not None and identity_of(caller).is_interactive:

            async def work(call: SuspendedCall) -> dict[str, Any]:
                front = replace(context, host=call, on_progress=call.progress)
                return await upstream.request(method, params, front, timeout)

            result, waiting = await self._suspended.begin(work, context, patience)
        else:
            result, waiting = await send(params), None
        return self._closed(upstream.name, method, params, caller, result, waiting, patience)

    def left(self, session: str) -> None:
        """Cancel the calls that wait for answers of a host's session, which has ended."""
        if self._suspended is not None:
            self._suspended.left(session)

    def _opened(
        self, upstream: str, method: str, params: Mapping[str, Any], caller: Caller
    ) -> tuple[Mapping[str, Any], str | None]:
        """Return the params with the upstream's own state in place of ours, and the id of a suspended call."""
        state = params.get("requestState")
        if state is None:
            return params, None
        if not isinstance(state, str) or not state.startswith(MARK):
            raise InvalidRequest(
                "requestState was not issued by the gateway", remedy="repeat the request without requestState"
            )
        content = self._seal.open(state, caller, method, {**params, "name": _named(upstream, params)})
        if PARKED in content:
            return params, parked_call(str(content[PARKED]))
        return {**params, "requestState": content[_UPSTREAM]}, None

    def _closed(
        self,
        upstream: str,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        result: dict[str, Any],
        waiting: SuspendedCall | None,
        patience: float,
    ) -> dict[str, Any]:
        """Return the result, with a state of ours if it asks for input."""
        if result.get("resultType") != INPUT_REQUIRED:
            return result
        if waiting is not None:
            content, seconds = {PARKED: parked_at(self._replica, waiting.id)}, patience
        elif result.get("requestState") is not None:
            content, seconds = {_UPSTREAM: result["requestState"]}, CARRIED_SECONDS
        else:
            return result
        bound = {**params, "name": _named(upstream, params)}
        return {**result, "requestState": self._seal.close(content, caller, method, bound, seconds)}


@asynccontextmanager
async def open_bridge() -> AsyncGenerator[Bridge]:
    """Provide a bridge inside the context. Leaving cancels every call that waits for its host."""
    async with background_tasks() as tasks:
        yield Bridge(SuspendedCalls(tasks))


def _named(upstream: str, params: Mapping[str, Any]) -> str:
    return f"{upstream} {params.get('name')}"


def _complete(upstream: str, method: str, result: dict[str, Any]) -> dict[str, Any]:
    if result.get("resultType") == INPUT_REQUIRED:
        raise UpstreamRefused(upstream, INTERNAL_ERROR, f"{method} needs input, which cannot be asked for here")
    return result


def _answers(params: Mapping[str, Any]) -> Mapping[str, Any]:
    answers = params.get("inputResponses")
    return as_object(answers)

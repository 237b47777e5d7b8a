"""Rounds of input for a host of the handshake era in front of a modern upstream: the host is asked directly."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from gateway.core.model.caller import Caller
from gateway.core.model.wire import INTERNAL_ERROR
from gateway.errors import HostRefused, UpstreamGarbage, UpstreamRefused
from gateway.upstream import Host
from gateway.upstream.bridging.input_requests import INPUT_REQUIRED, can_answer, for_handshake, input_requests

ROUNDS = 16
"""How often one call may ask for input. The specification requires a limit without naming one."""

Send = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the request with these params, each time with a new id."""


async def drive(
    result: dict[str, Any],
    send: Send,
    params: Mapping[str, Any],
    caller: Caller,
    host: Host,
    *,
    upstream: str,
    patience: float,
) -> dict[str, Any]:
    """Ask the host for all input that the upstream needs, starting with `result`, and return the complete result.

    `requestState` is echoed unchanged, and left out if there is none (patterns/mrtr.mdx l.228-257). The host has
    `patience` seconds for the answers of one round.

    Raises:
        UpstreamRefused: the upstream asks for something that the host cannot answer or did not answer.
        UpstreamGarbage: the upstream asks too often, or for nothing.
    """
    rounds = 0
    while result.get("resultType") == INPUT_REQUIRED:
        if rounds == ROUNDS:
            raise UpstreamGarbage(upstream, f"asked for input {ROUNDS} times in one call, and asks again")
        rounds += 1
        again = {key: value for key, value in params.items() if key not in ("inputResponses", "requestState")}
        requests, state = input_requests(result), result.get("requestState")
        if not requests and state is None:
            raise UpstreamGarbage(upstream, "asks for input without saying which")
        if requests:
            again["inputResponses"] = await _answers(requests, caller, host, upstream, patience)
        if state is not None:
            again["requestState"] = state
        result = await send(again)
    return result


async def _answers(
    requests: Mapping[str, tuple[str, dict[str, Any]]], caller: Caller, host: Host, upstream: str, patience: float
) -> dict[str, Any]:
    for method, params in requests.values():
        if not can_answer(caller, method, params):
            words = f"needs {method}, which this host did not declare that it can answer"
            raise UpstreamRefused(upstream, INTERNAL_ERROR, words)
    answers: dict[str, Any] = {}
    try:
        with anyio.fail_after(patience):
            for key, (method, params) in requests.items():
                answers[key] = await host.ask(method, for_handshake(method, params))
    except HostRefused as refusal:
        raise UpstreamRefused(upstream, refusal.code, refusal.message, refusal.data) from None
    except TimeoutError:
        words = f"asked the host for input, which did not answer within {patience:g} s"
        raise UpstreamRefused(upstream, INTERNAL_ERROR, words) from None
    return answers

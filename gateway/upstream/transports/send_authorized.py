"""Requests with the token of their connection's principal, and another attempt where another token may do."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

import httpx2

from gateway.upstream.authorization.ports import Credentials, TokenSource

ResponseT = TypeVar("ResponseT")

_MOST_ATTEMPTS = 3
"""Attempts for one request: an upstream may refuse whatever token it is sent."""

_MOST_NONCES = 2
"""How often a request is repeated besides, because the upstream wants another nonce in its proof (RFC 9449, 9)."""


class Refusal(NamedTuple):
    """What is needed of a response: its status, and its WWW-Authenticate headers."""

    status: int
    challenges: Sequence[str]


async def send_authorized(
    tokens: TokenSource | None,
    send: Callable[[Credentials | None], Awaitable[ResponseT]],
    refusal_in: Callable[[ResponseT], Refusal],
    discard: Callable[[ResponseT], Awaitable[None]],
) -> ResponseT:
    """Send a request with a token, None for none, and return the last response.

    `send` adds the token's headers, and lets it heed the response. A request that was refused with 401 or 403 was not
    processed, so it is sent again with another token, if there is one.

    Raises LoginRequired and LoginFailed, and what `send` raises.
    """
    if tokens is None:
        return await send(None)
    token = await tokens.token()
    for _ in range(_MOST_ATTEMPTS - 1):
        response = await _with_nonces(token, send, refusal_in, discard)
        refusal = refusal_in(response)
        if refusal.status not in (401, 403):
            return response
        try:
            another = await tokens.challenged(token, refusal.status, refusal.challenges)
        except BaseException:
            await discard(response)
            raise
        if another is None or another == token:
            return response
        await discard(response)
        token = another
    return await _with_nonces(token, send, refusal_in, discard)


async def _with_nonces(
    token: Credentials | None,
    send: Callable[[Credentials | None], Awaitable[ResponseT]],
    refusal_in: Callable[[ResponseT], Refusal],
    discard: Callable[[ResponseT], Awaitable[None]],
) -> ResponseT:
    """Send a request, again if the upstream wants a nonce in the proof that belongs to the token."""
    response = await send(token)
    if token is None or token.key is None:
        return response
    for _ in range(_MOST_NONCES):
        refusal = refusal_in(response)
        if refusal.status != 401 or not _wants_nonce(refusal.challenges):
            break
        await discard(response)
        response = await send(token)
    return response


def _wants_nonce(challenges: Sequence[str]) -> bool:
    from gateway.upstream.authorization.challenge import NONCE_WANTED, challenge_in

    return challenge_in(challenges).proof_error == NONCE_WANTED


async def send_request(
    tokens: TokenSource | None,
    send: Callable[[httpx2.Request], Awaitable[httpx2.Response]],
    request: httpx2.Request,
) -> httpx2.Response:
    """Send a request of httpx2's, as `send_authorized` does; `send` must not follow redirects."""

    async def authorized(token: Credentials | None) -> httpx2.Response:
        if token is None:
            return await send(request)
        request.headers.pop("dpop", None)  # that of an attempt before
        request.headers.update(token.headers(request.method, str(request.url)))
        response = await send(request)
        token.heed(str(request.url), response.headers.get_list("dpop-nonce"))
        return response

    return await send_authorized(tokens, authorized, _refusal_in, httpx2.Response.aclose)


def _refusal_in(response: httpx2.Response) -> Refusal:
    return Refusal(response.status_code, response.headers.get_list("www-authenticate"))

"""Requests with the token of their connection's principal, and another attempt where another token may do."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

import httpx2

from gateway.upstream.authorization.ports import TokenSource

ResponseT = TypeVar("ResponseT")

_MOST_ATTEMPTS = 3
"""Attempts for one request: an upstream may refuse whatever token it is sent."""


class Refusal(NamedTuple):
    """What is needed of a response: its status, and its WWW-Authenticate headers."""

    status: int
    challenges: Sequence[str]


async def send_authorized(
    tokens: TokenSource | None,
    send: Callable[[str | None], Awaitable[ResponseT]],
    refusal_in: Callable[[ResponseT], Refusal],
    discard: Callable[[ResponseT], Awaitable[None]],
) -> ResponseT:
    """Send a request with the value for its Authorization header, None for none, and return the last response.

    A request that was refused with 401 or 403 was not processed, so it is sent again with another token, if there is
    one. Raises LoginRequired and LoginFailed, and what `send` raises.
    """
    if tokens is None:
        return await send(None)
    token = await tokens.token()
    for _ in range(_MOST_ATTEMPTS - 1):
        response = await send(_header(token))
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
    return await send(_header(token))


def _header(token: str | None) -> str | None:
    return None if token is None else f"Bearer {token}"


async def send_request(
    tokens: TokenSource | None,
    send: Callable[[httpx2.Request], Awaitable[httpx2.Response]],
    request: httpx2.Request,
) -> httpx2.Response:
    """Send a request of httpx2's, as `send_authorized` does; `send` must not follow redirects."""

    async def authorized(authorization: str | None) -> httpx2.Response:
        if authorization is not None:
            request.headers["authorization"] = authorization
        return await send(request)

    return await send_authorized(tokens, authorized, _refusal_in, httpx2.Response.aclose)


def _refusal_in(response: httpx2.Response) -> Refusal:
    return Refusal(response.status_code, response.headers.get_list("www-authenticate"))

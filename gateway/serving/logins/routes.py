"""The routes of logins to upstreams. They need no token: a browser has none."""

import hmac
import secrets
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.core.fact_words import plain
from gateway.errors import GatewayError
from gateway.serving.logins.pages import begin_page, done_page, failed_page
from gateway.upstream.authorization.login_desk import LIFETIME, LOGIN_PATH, LoginDesk, Offer
from gateway.upstream.authorization.ports import CALLBACK_PATH, CLIENT_DOCUMENT_PATH

_COOKIE = "mcp-gateway-login"
_FOLDER = CALLBACK_PATH.rpartition("/")[0]
_SECRET_LENGTHS = range(32, 100)
_LONGEST = 1_000


def login_routes(desk: LoginDesk, document: dict[str, Any] | None = None, *, asks: bool = True) -> list[BaseRoute]:
    """Return the routes `/oauth/login/<ticket>` and `/oauth/callback`, and `/oauth/client.json` with the `document`.

    `asks`: a page asks whether to go on, since the link may have reached somebody else; needless on the own machine.
    """

    async def begin(request: Request) -> Response:
        ticket = request.path_params["ticket"]
        try:
            offer = desk.find(ticket)
            secret = _secret(request, offer)
            agreed = request.query_params.get("continue", "")
            if asks and not hmac.compare_digest(agreed.encode(), _confirmation(secret, ticket).encode()):
                page = begin_page(offer.upstream, offer.principal, offer.base, _confirmation(secret, ticket))
                return _remembered(page, secret, offer)
            url = await desk.begin(ticket, secret)
        except GatewayError as error:
            return _failed(error)
        onward = RedirectResponse(url, 303, {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
        return _remembered(onward, secret, offer)

    async def complete(request: Request) -> Response:
        query = dict(request.query_params)
        begun = desk.begun(query.get("state", ""))
        try:
            offer = await desk.complete(query, "" if begun is None else request.cookies.get(_cookie(begun), ""))
        except GatewayError as error:
            return _failed(error)
        return done_page(offer.upstream, offer.principal)

    async def client(_: Request) -> Response:
        return JSONResponse(document)

    described = [Route(CLIENT_DOCUMENT_PATH, client)] if document is not None else []
    return [Route(LOGIN_PATH + "/{ticket}", begin), Route(CALLBACK_PATH, complete), *described]


def _is_https(offer: Offer) -> bool:
    return urlsplit(offer.base).scheme == "https"


def _cookie(offer: Offer) -> str:
    """Return the cookie's name. Where there is TLS, its prefix keeps other hosts of the domain from setting it."""
    return f"__Host-{_COOKIE}" if _is_https(offer) else _COOKIE


def _secret(request: Request, offer: Offer) -> str:
    """Return what the browser is recognised by: only the one that began a login may complete it."""
    known = request.cookies.get(_cookie(offer), "")
    return known if len(known) in _SECRET_LENGTHS else secrets.token_urlsafe(32)


def _confirmation(secret: str, ticket: str) -> str:
    """Return what only the page of this browser can know, so that no other page can go on in its place."""
    return hmac.digest(secret.encode(), ticket.encode(), "sha256").hex()


def _remembered(answer: Response, secret: str, offer: Offer) -> Response:
    """Add the cookie. It comes back with the browser, although another site sends it (`lax`)."""
    answer.set_cookie(
        _cookie(offer),
        secret,
        max_age=int(LIFETIME),
        path="/" if _is_https(offer) else urlsplit(offer.base).path + _FOLDER,  # the prefix permits no other
        secure=_is_https(offer),
        httponly=True,
        samesite="lax",
    )
    return answer


def _failed(error: GatewayError) -> Response:
    return failed_page(plain(error.message, _LONGEST), error.remedy)

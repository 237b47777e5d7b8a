"""Who may use the console: whoever has a key or the token of an admin; and forms only from its own pages."""

import hmac
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import InvalidRequest
from gateway.serving.access.identified import Fault, Identified
from gateway.serving.console.request_body import read_body
from gateway.serving.console.responses import PAGE_HEADERS, as_json, page
from gateway.serving.console.sessions import IDLE_SECONDS, ConsoleSessions, form_token
from gateway.serving.http import WrongTokens

COOKIE = "mcp-gateway-console"
FORM_TOKEN = "X-Console-Token"  # noqa: S105 - the name of a header
SESSION_SCOPE = "gateway.console.session"

Identify = Callable[[str], Awaitable[Identified | Fault]]
"""Returns whom the value of an Authorization header identifies."""

_LONGEST_TOKEN = 8_192
_READING = frozenset({"GET", "HEAD"})


class Admission:
    """ASGI middleware before every page of the console.

    A browser enters by an address with a key, or by a form for a token, if `identify` knows admins by their tokens.
    Programs send such a token with each request. Only who has come by a key may do more than look.
    """

    def __init__(self, app: ASGIApp, sessions: ConsoleSessions, identify: Identify | None = None) -> None:
        self._app = app
        self._sessions = sessions
        self._identify = identify
        self._wrong = WrongTokens("the console")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return None
        request = Request(scope, receive)
        # As the router sees it: older versions of Starlette make the URL of a request from its Host header.
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path.startswith("/static/"):
            return await self._app(scope, receive, send)
        if path == "/enter":
            return await (await self._entering(request))(scope, receive, send)
        session = request.cookies.get(_cookie(request), "")
        given = request.headers.get("authorization", "")
        is_admin = await self._is_admin(given)
        if not is_admin and not await self._is_open(session):
            if given and self._identify is not None:
                await self._wrong.refused(scope)
            answer = _refused(request, path, by_token=self._identify is not None)
            return await answer(scope, receive, send)
        if request.method not in _READING and (problem := self._may_not_act(request, session)):
            return await _told(request, path, problem)(scope, receive, send)
        scope[SESSION_SCOPE] = session
        return await self._app(scope, receive, send)

    def _may_not_act(self, request: Request, session: str) -> str | None:
        """Return why this browser or program may only look; None if it may do more.

        What is done here is done as the operator, on the operator's machine and with the operator's logins: adding a
        server starts a program. An admin may see what concerns the gateway as a whole, which is less.
        """
        if self._sessions.authorization_of(session) != "":
            return "an admin's token only looks: `mcp-gateway console` on the gateway's machine also does things"
        return None if _is_own(request, session) else "this form is not one of the console's own pages"

    async def _is_open(self, session: str) -> bool:
        authorization = self._sessions.authorization_of(session)
        if not authorization:
            return authorization is not None
        if await self._is_admin(authorization):
            return True
        self._sessions.close(session)  # the token was withdrawn meanwhile
        return False

    async def _is_admin(self, authorization: str) -> bool:
        if self._identify is None or not authorization:
            return False
        found = await self._identify(authorization)
        return isinstance(found, Identified) and found.is_admin

    async def _entering(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._with_token(request)
        key = request.query_params.get("key")
        if key is None:
            return page("enter.html", {"base": _base(request), "by_token": self._identify is not None, "problem": None})
        session = self._sessions.redeem(key)
        if session is None:
            await self._wrong.refused(request.scope, self._sessions.why_refused(key))
            return _refused(request, "", by_token=self._identify is not None)
        return _entered(request, session)

    async def _with_token(self, request: Request) -> Response:
        try:
            body = await read_body(request, _LONGEST_TOKEN, "this is too long for a token")
        except InvalidRequest as error:
            return as_json({"error": error.message}, 413)
        token = Request({**request.scope, "query_string": body}).query_params.get("token", "").strip()
        authorization = f"Bearer {token}"
        if not token or not token.isascii() or not await self._is_admin(authorization):
            await self._wrong.refused(request.scope)
            problem = "This is not the token of an admin."
            return page("enter.html", {"base": _base(request), "by_token": True, "problem": problem}, 403)
        return _entered(request, self._sessions.open(authorization))


def _told(request: Request, path: str, problem: str) -> Response:
    if "hx-request" in request.headers and not path.startswith("/api/"):
        return page("refused.html", {"problem": problem})  # htmx puts only what was granted in place
    return as_json({"error": problem}, 403)


def _entered(request: Request, session: str) -> Response:
    answer = RedirectResponse(f"{_base(request)}/", 303, dict(PAGE_HEADERS))
    answer.set_cookie(
        _cookie(request),
        session,
        max_age=int(IDLE_SECONDS),
        path=_base(request) or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",  # strict would not be sent after following the link of a terminal or a chat
    )
    return answer


def _cookie(request: Request) -> str:
    """Return the name of the cookie. Browsers send cookies to all ports of a machine, and each may have a console."""
    server = request.scope.get("server")  # not what the Host header says, which may be anything
    return COOKIE if server is None or server[1] is None else f"{COOKIE}-{server[1]}"


def _is_own(request: Request, session: str) -> bool:
    given = request.headers.get(FORM_TOKEN, "")
    return hmac.compare_digest(given.encode(), form_token(session).encode())


def _refused(request: Request, path: str, *, by_token: bool) -> Response:
    if path.startswith("/api/"):
        return as_json({"error": "the console needs the token of an admin, or a session of its own"}, 401)
    problem = "This address was used before, or is too old." if request.query_params.get("key") else None
    return page("enter.html", {"base": _base(request), "by_token": by_token, "problem": problem}, 401)


def _base(request: Request) -> str:
    return request.scope.get("root_path", "")

"""Which hosts of Streamable HTTP are there: those with a request or a stream of their session open."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.upstream.connection.owners import owner_by_session


class AttendanceMiddleware:
    """ASGI wrapper: while a request of a session is open, so also its stream of events, `attending` its host is."""

    def __init__(self, app: ASGIApp, attending: Callable[[str], AbstractContextManager[None]]) -> None:
        self._app = app
        self._attending = attending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = Headers(scope=scope).get("mcp-session-id")
        if session is None:
            return await self._app(scope, receive, send)
        with self._attending(owner_by_session(session)):
            return await self._app(scope, receive, send)

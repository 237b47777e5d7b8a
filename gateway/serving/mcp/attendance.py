"""Track which hosts of Streamable HTTP are present: those whose session has a request or a stream open."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.upstream.connection.owners import owner_by_session


class AttendanceMiddleware:
    """ASGI wrapper that holds `attending` for a host while its session has a request or an event stream open."""

    def __init__(self, app: ASGIApp, attending: Callable[[str], AbstractContextManager[None]]) -> None:
        self._app = app
        self._attending = attending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = Headers(scope=scope).get("mcp-session-id")
        if session is None:
            return await self._app(scope, receive, send)
        with self._attending(owner_by_session(session)):
            return await self._app(scope, receive, send)

"""Stop without breaking anything off: no new sessions, running requests end within a grace, and then the rest.

`/readyz` says at once that the gateway stops, so that load balancers send hosts elsewhere.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.wording import counted
from gateway.serving.mcp.events import LOST
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.serving.mcp.security import refused_response
from gateway.serving.mcp.service import WaitingPort
from gateway.system.background_tasks import background_tasks

logger = logging.getLogger(__name__)

_RETRY_SECONDS = "2"
_LOOK_SECONDS = 0.1
_LISTING_SECONDS = 2.0
"""Time to answer lists that have waited for upstreams with what is there."""


class Drain:
    """The end of one gateway's service, which begins when it is asked for. `grace` is in seconds.

    `lists` returns the running requests that nobody waits for: they end when nothing else runs, or the grace is over.
    """

    def __init__(
        self, running: RunningRequests, grace: float, lists: Callable[[], WaitingPort | None] = lambda: None
    ) -> None:
        self._running = running
        self._lists = lists
        self._grace = grace
        self._asked = anyio.Event()
        self.also: list[Callable[[], Awaitable[None]]] = []
        """Waited for within the grace, once the running requests have ended."""
        self.before: list[Callable[[], Awaitable[None]]] = []
        """Called when it begins: other replicas are told."""
        self.after: list[Callable[[], Awaitable[None]]] = []
        """Called when the running requests have ended, or the grace has: sessions are handed over."""
        self.meanwhile: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """Run from the beginning on, until `after`: sessions are handed over before, where nothing of them runs."""

    @property
    def has_begun(self) -> bool:
        """Whether the gateway is about to stop."""
        return self._asked.is_set()

    def ask(self) -> bool:
        """Let it begin; false if it has begun before."""
        is_first = not self.has_begun
        self._asked.set()
        return is_first

    async def over(self) -> None:
        """Wait until it has been asked for, and is over."""
        await self._asked.wait()
        running = counted(self._running.number, "request")
        logger.info("stopping: there are no new sessions, and %s may end within %g s", running, self._grace)
        for tell in self.before:
            await tell()
        async with background_tasks() as tasks:
            for run in self.meanwhile:
                tasks.start_soon(run)
            with anyio.move_on_after(self._grace) as grace:
                await self._only_lists_wait()
                for wait in self.also:
                    await wait()
            await self._end_lists()
        if grace.cancelled_caught:
            what = counted(self._running.number, "request") if self._running.number else "long calls"
            logger.warning("stopping: %s did not end in time", what)
        for tell in self.after:
            await tell()

    async def _only_lists_wait(self) -> None:
        while self._running.number > self._waiting:  # noqa: ASYNC110 - two things decide on it
            await anyio.sleep(_LOOK_SECONDS)

    async def _end_lists(self) -> None:
        """Answer the lists that still wait with what is there."""
        if (lists := self._lists()) is not None and lists.number:
            lists.end()
            with anyio.move_on_after(_LISTING_SECONDS):
                await self._running.quiet()

    @property
    def _waiting(self) -> int:
        lists = self._lists()
        return 0 if lists is None else lists.number

    def refusing_sessions(self, app: ASGIApp) -> ASGIApp:
        """Wrap an endpoint: from then on, it opens no sessions, and keeps no connections open for further requests."""
        return _RefusingSessions(app, self)


class _RefusingSessions:
    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and self._drain.has_begun:
                others = [(name, value) for name, value in message["headers"] if name.lower() != b"connection"]
                message = {**message, "headers": [*others, (b"connection", b"close")]}
            await send(message)

        if self._drain.has_begun and opens_session(scope):
            words = "the gateway is about to stop: open the session in a moment"
            return await refused_response(503, words, {"Retry-After": _RETRY_SECONDS})(scope, receive, send_and_close)
        return await self._app(scope, receive, send_and_close)


class TellingOfTheEnd:
    """ASGI middleware: a request that is cancelled because the gateway stops is answered by an error that says so."""

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except anyio.get_cancelled_exc_class():
            if scope["type"] == "http" and self._drain.has_begun and not has_begun:
                with anyio.CancelScope(shield=True):
                    await refused_response(502, LOST)(scope, receive, send)
            raise


def opens_session(scope: Scope) -> bool:
    """Whether a request can only open a session: one without the id of a session, of a revision that has them."""
    headers = Headers(scope=scope)
    return (
        scope["method"] == "POST"
        and "mcp-session-id" not in headers
        and headers.get("mcp-protocol-version") not in MODERN_REVISIONS
    )

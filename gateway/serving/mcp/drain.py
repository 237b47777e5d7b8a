"""Stop without breaking anything off: no new sessions, running requests end within a grace, and then the rest.

`/readyz` says at once that the gateway stops, so that load balancers send hosts elsewhere. Once nothing runs, or
the grace is over, the door is closed: nobody can connect any more, and who has connected is answered.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.core.fact_words import counted
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.serving.http.limited_connection import CLOSE, LAST
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
_LAST_SECONDS = 2.0
"""Time after the grace in which what came before the door was closed is answered, twice."""
_BEGINNING_SECONDS = 0.05
"""After this time, a request whose response has begun is counted as one that runs."""


class Drain:
    """The end of one gateway's service, which begins when it is asked for. `grace` is in seconds.

    `running` are the requests that are answered here. `lists` returns those of them that nobody waits for: they end
    when nothing else runs, or the grace is over.
    """

    def __init__(
        self, running: RunningRequests, grace: float, lists: Callable[[], WaitingPort | None] = lambda: None
    ) -> None:
        self._running = running
        self._lists = lists
        self._grace = grace
        self._asked = anyio.Event()
        self._arriving = 0
        """Requests that have come, and whose responses have not begun."""
        self.before: list[Callable[[], Awaitable[None]]] = []
        """Called when it begins: other replicas are told."""
        self.meanwhile: list[Callable[[], Coroutine[Any, Any, None]]] = []
        """Run from the beginning on, until `after`: sessions are handed over before, where nothing of them runs."""
        self.also: list[Callable[[], Awaitable[None]]] = []
        """Waited for within the grace, once the running requests have ended."""
        self.passed_on: list[RunningRequests] = []
        """Requests that others answer through this gateway: more may come until the door is closed."""
        self.after: list[Callable[[], Awaitable[None]]] = []
        """Called when the running requests have ended, or the grace has: sessions are handed over."""

    @property
    def has_begun(self) -> bool:
        """Whether the gateway is about to stop."""
        return self._asked.is_set()

    def ask(self) -> bool:
        """Let it begin; false if it has begun before."""
        is_first = not self.has_begun
        self._asked.set()
        return is_first

    @contextmanager
    def arriving(self) -> Generator[Callable[[], None]]:
        """Count a request until its response begins, when what this gives is called, or until it ends."""
        self._arriving += 1
        is_over = False

        def begun() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                self._arriving -= 1

        try:
            yield begun
        finally:
            begun()

    async def over(self, close_door: Callable[[], Awaitable[None]]) -> None:
        """Wait until it has been asked for, and is over.

        `close_door` lets nobody connect any more, and waits for what those ask who have connected before. It is called
        twice.
        """
        await self._asked.wait()
        logger.info("stopping: %s", what_ends(self._running.number, self._grace))
        for tell in self.before:
            await tell()
        async with background_tasks() as tasks:
            for run in self.meanwhile:
                tasks.start_soon(run)
            # The door is open until then: other replicas count one that cannot be reached as gone, with what it runs.
            with anyio.move_on_after(self._grace) as grace:
                await self._all_ended()
            await close_door()
            with anyio.move_on_after(_LAST_SECONDS):
                await self._nothing_comes()
            await self._end_lists()
            # On a connection whose answer had begun before the first time, another request may come, or have come.
            with anyio.move_on_after(_LAST_SECONDS):
                await close_door()
                await self._nothing_comes()
        if grace.cancelled_caught:
            what = counted(self._running.number, "request") if self._running.number else "long calls"
            logger.warning("stopping: %s did not end in time", what)
        for tell in self.after:
            await tell()

    async def _all_ended(self) -> None:
        while self._running.number > self._waiting:  # noqa: ASYNC110 - two things decide on it
            await anyio.sleep(_LOOK_SECONDS)
        for wait in self.also:
            await wait()

    async def _nothing_comes(self) -> None:
        """Wait until nothing has run, nor has been on its way here, for a moment."""
        was_quiet = False
        while not (was_quiet and self._is_quiet):
            was_quiet = self._is_quiet
            await anyio.sleep(_BEGINNING_SECONDS)

    @property
    def _is_quiet(self) -> bool:
        passed_on = sum(one.number for one in self.passed_on)
        return not passed_on and max(self._arriving, self._running.number) <= self._waiting

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
        """Wrap an endpoint: from then on, it opens no sessions."""
        return _RefusingSessions(app, self)


class _RefusingSessions:
    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._drain.has_begun and opens_session(scope):
            words = "the gateway is about to stop: open the session in a moment"
            return await refused_response(503, words, {"Retry-After": _RETRY_SECONDS})(scope, receive, send)
        return await self._app(scope, receive, send)


class TellingOfTheEnd:
    """ASGI middleware around everything: from the beginning of the end on, no connection is kept for more requests.

    A request that is cancelled because the gateway stops is answered by an error that says so.
    """

    def __init__(self, app: ASGIApp, drain: Drain) -> None:
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            if message["type"] == "http.response.start" and self._drain.has_begun:
                others = [(name, value) for name, value in message["headers"] if name.lower() != b"connection"]
                said = () if LAST in scope else (CLOSE,)
                message = {**message, "headers": [*others, *said]}
            begun()
            await send(message)

        with self._drain.arriving() as begun:
            try:
                return await self._app(scope, receive, sending)
            except anyio.get_cancelled_exc_class():
                if self._drain.has_begun and not has_begun:
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


def what_ends(running: int, grace: float) -> str:
    """Say what is waited for when the gateway stops."""
    if not running:
        return "no request is running, and there are no new sessions"
    has = "has" if running == 1 else "have"
    return f"{counted(running, 'running request')} {has} up to {grace:g} s to end, and there are no new sessions"

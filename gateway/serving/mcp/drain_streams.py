"""End event streams when the gateway stops, or their token is no longer valid: hosts would hold them open for ever."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.serving.mcp.request_caller import ENDED_SCOPE


@contextmanager
def cancelled_without_token(scope: Scope) -> Generator[anyio.CancelScope]:
    """Context manager that is cancelled when the token of an HTTP request is no longer valid; gives its scope."""
    with anyio.CancelScope() as cancel_scope:

        async def cancel() -> None:
            await scope[ENDED_SCOPE]()
            cancel_scope.cancel()

        waiting = asyncio.get_running_loop().create_task(cancel()) if ENDED_SCOPE in scope else None
        try:
            yield cancel_scope
        finally:
            if waiting is not None:
                waiting.cancel()


class Draining:
    """Whether the gateway is stopping, and listeners for that."""

    def __init__(self) -> None:
        self._begun = anyio.Event()
        self._listeners: list[Callable[[], None]] = []

    def on_drain(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the gateway begins to stop."""
        self._listeners.append(listener)

    def begin(self) -> None:
        """End all open streams, and any that are opened from now on."""
        self._begun.set()
        for listener in self._listeners:
            listener()

    def ending_streams(self, app: ASGIApp) -> ASGIApp:
        """Wrap `app` so that hosts' GETs appear disconnected once this begins, or their token ends.

        The response is ended properly.
        """
        return _EndingStreams(app, self._begun)


class _EndingStreams:
    def __init__(self, app: ASGIApp, begun: anyio.Event) -> None:
        self._app = app
        self._begun = begun

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            return await self._app(scope, receive, send)
        unfinished = revoked = False

        async def receive_or_hang_up() -> Message:
            message: Message = {"type": "http.disconnect"}

            async def receive_from_host() -> None:
                nonlocal message
                message = await receive()
                tasks.cancel_scope.cancel()

            nonlocal revoked
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive_from_host)
                with cancelled_without_token(scope) as valid:
                    await self._begun.wait()
                revoked = valid.cancelled_caught
                tasks.cancel_scope.cancel()
            return message

        async def watched_send(message: Message) -> None:
            nonlocal unfinished
            unfinished = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        await self._app(scope, receive_or_hang_up, watched_send)
        if unfinished and (revoked or self._begun.is_set()):
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None

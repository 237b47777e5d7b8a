"""End event streams when the gateway stops: hosts would hold them open for ever."""

from collections.abc import Callable

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send


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
        """Wrap `app` so that hosts' GETs appear disconnected once this begins. The response is ended properly."""
        return _EndingStreams(app, self._begun)


class _EndingStreams:
    def __init__(self, app: ASGIApp, begun: anyio.Event) -> None:
        self._app = app
        self._begun = begun

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "GET":
            return await self._app(scope, receive, send)
        unfinished = False

        async def receive_or_hang_up() -> Message:
            message: Message = {"type": "http.disconnect"}

            async def receive_from_host() -> None:
                nonlocal message
                message = await receive()
                tasks.cancel_scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(receive_from_host)
                await self._begun.wait()
                tasks.cancel_scope.cancel()
            return message

        async def watched_send(message: Message) -> None:
            nonlocal unfinished
            unfinished = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        await self._app(scope, receive_or_hang_up, watched_send)
        if unfinished and self._begun.is_set():
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None

"""A gateway opened for a block, or until it is closed: `async with`, or `await` and `aclose()`."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from gateway.agents.toolset import OpenGateway


class GatewayContext:
    """The object that `gateway.open` and `gateway.connect` return. It can be entered, or awaited, once."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[OpenGateway]]) -> None:
        self._make = make
        self._entered: AbstractAsyncContextManager[OpenGateway] | None = None

    async def __aenter__(self) -> OpenGateway:
        self._entered = self._make()
        return await self._entered.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._entered is not None
        return await self._entered.__aexit__(kind, error, trace)

    def __await__(self) -> Generator[Any, Any, OpenGateway]:
        return self._held().__await__()

    async def _held(self) -> OpenGateway:
        """Hold the gateway open in a task of its own, because task groups must end in the task that began them."""
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[OpenGateway] = loop.create_future()
        ending = asyncio.Event()

        async def hold() -> None:
            try:
                async with self._make() as gateway:
                    opened.set_result(gateway)
                    await ending.wait()
            except BaseException as error:
                if opened.done():
                    raise
                opened.set_exception(error)

        task = loop.create_task(hold(), name="gateway")

        async def close() -> None:
            ending.set()
            await asyncio.shield(task)

        try:
            gateway = await asyncio.shield(opened)
        except asyncio.CancelledError:
            task.cancel()
            raise
        gateway.on_close(close)
        return gateway

"""What every stream of a host's messages has in common for the SDK."""

from abc import abstractmethod

import anyio
from anyio.abc import AsyncResource
from mcp.shared._stream_protocols import ReadStream
from mcp.shared.message import SessionMessage


class MessageReads(AsyncResource):
    """The messages that arrive, as the SDK's `ReadStream`: a subclass yields them by `__anext__`."""

    @abstractmethod
    async def __anext__(self) -> SessionMessage | Exception: ...

    def __aiter__(self) -> ReadStream[SessionMessage | Exception]:
        return self

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message. Raises EndOfStream after the last one."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

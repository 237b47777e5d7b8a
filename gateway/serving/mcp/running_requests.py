"""Requests that are being answered, and the wait until none is."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio


class RunningRequests:
    """The number of requests that are being answered, and a wait for their end."""

    def __init__(self) -> None:
        self.number = 0
        self._quiet: anyio.Event | None = None

    @contextmanager
    def one(self) -> Generator[None]:
        """Count a request while the context is open."""
        self.number += 1
        try:
            yield
        finally:
            self.number -= 1
            if not self.number and self._quiet is not None:
                self._quiet.set()
                self._quiet = None

    async def quiet(self) -> None:
        """Wait until no request is being answered."""
        while self.number:
            self._quiet = self._quiet or anyio.Event()
            await self._quiet.wait()

"""Reconnection: the pause after a connection has ended, or could not be opened."""

import anyio

from gateway.errors import Failure, FailureCode
from gateway.upstream.connection.backoff import Backoff
from gateway.upstream.connection.bounds import Restarts
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.status import ConnectionStatus
from gateway.upstream.transports.causes import OverMemory, Resting, Vacated

STEADY = 20.0
"""Seconds after which a connection counts as stable, so that its loss is followed by a short delay."""


class Reconnection:
    """Waits until a connection is to be opened again. Only the default connection of an upstream is without a call."""

    def __init__(self, status: ConnectionStatus, restarts_per_hour: int, *, is_default: bool) -> None:
        self._status = status
        self._is_default = is_default
        self._backoff = Backoff()
        self._restarts = Restarts(restarts_per_hour)

    def held(self, seconds: float) -> None:
        """Note how long a connection has lasted."""
        if seconds >= STEADY:
            self._backoff.reset()

    async def pause(self, failure: Failure, ended: Exception | None, wanted: anyio.Event) -> None:
        """Report why there is no connection, and wait until the next attempt: for a delay, or until it is `wanted`.

        `ended` is the exception that has ended the last connection, if it was opened.
        """
        if isinstance(ended, Vacated):
            return
        if isinstance(ended, Resting):
            self._status.enter(UpstreamState.SLEEPING, failure)
            await wanted.wait()
            return
        if failure.code is FailureCode.LOGIN_REQUIRED:
            if wanted.is_set():  # somebody has logged in meanwhile
                return
            self._status.enter(UpstreamState.LOGIN, failure)
            await wanted.wait()
            return
        self._status.enter(UpstreamState.FAILED, failure)
        if isinstance(ended, OverMemory) or not self._is_default:
            await wanted.wait()
        else:
            with anyio.move_on_after(self._backoff.delay()):
                await wanted.wait()
            if (pause := self._restarts.pause()) and not wanted.is_set():
                self._status.enter(UpstreamState.FAILED, self._restarts.explained(failure))
                with anyio.move_on_after(pause):
                    await wanted.wait()
        self._restarts.count()

"""Write calls as they end to the file that keeps them (`call_file`), beside everything else that the gateway does."""

import logging
from collections.abc import Callable

import anyio
from anyio import to_thread

from gateway.serving.console.call_file import CallFile, EndedCall
from gateway.telemetry.call_history import CallHistory, PastCall

_GATHERING_SECONDS = 0.5
_LAST_SECONDS = 5.0
_MOST_WAITING = 2_000

logger = logging.getLogger(__name__)


class CallKeeper:
    """Keeps the calls of a history in a file. `taken` returns a call as it may be written: with its secrets masked."""

    def __init__(self, history: CallHistory, file: CallFile, taken: Callable[[PastCall], EndedCall]) -> None:
        self._history = history
        self._file = file
        self._taken = taken
        self._waiting: list[PastCall] = []
        self._ended = anyio.Event()
        self._is_failing = False
        self._stop = history.listen(self._note)

    def _note(self, call: PastCall) -> None:
        if not call.is_running and len(self._waiting) < _MOST_WAITING:
            self._waiting.append(call)
            self._ended.set()

    async def run(self) -> None:
        """Write calls until this is cancelled, and then those that are left."""
        try:
            while True:
                await self._ended.wait()
                await anyio.sleep(_GATHERING_SECONDS)
                await self._write()
        finally:
            self._stop()
            with anyio.CancelScope(shield=True), anyio.move_on_after(_LAST_SECONDS):
                await self._write()
            self._file.close()

    async def _write(self) -> None:
        self._ended = anyio.Event()
        waiting, self._waiting = self._waiting, []
        try:
            removed = await to_thread.run_sync(lambda: self._file.write([self._taken(call) for call in waiting]))
        except Exception as error:  # whatever it is, hosts are served on
            if not self._is_failing:
                logger.error("past calls cannot be written to their file: %s", error)
            self._is_failing = True
            return
        self._is_failing = False
        for number in removed.emptied:
            self._history.empty(number)
        for number in removed.dropped:
            self._history.forget(number)

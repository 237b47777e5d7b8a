"""The registry of calls that have outlived the requests of their hosts: bounded in number, in age and in bytes."""

import logging
import math
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from gateway.config.long_call_settings import LongCallSettings
from gateway.core.fact_words import plain
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import Size
from gateway.errors import GatewayError, UnknownLongCall
from gateway.routing.long_calls.kept_outcome import outcome_json
from gateway.routing.long_calls.long_call import LongCall
from gateway.routing.replica_port import ReplicaPort
from gateway.routing.result_sizes import size_in_thread
from gateway.system.background_tasks import background_tasks
from gateway.upstream import RequestContext
from gateway.upstream.connection.owners import client_of

logger = logging.getLogger(__name__)

Work = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Makes a call, with its params, and returns the result for its host."""


class LongCalls:
    """Runs calls in `tasks`, and keeps those whose requests have been answered (`keep`), by id, for their owners.

    A kept call, or its outcome, is given up when nobody has asked for it for `settings.lasts` seconds.
    """

    def __init__(self, tasks: TaskGroup, settings: LongCallSettings | None = None) -> None:
        self.settings = settings or LongCallSettings()
        self._tasks = tasks
        self._kept: dict[str, LongCall] = {}
        self._leaving: dict[str, Callable[[], None]] = {}
        self._quiet = anyio.Event()
        self.replica: ReplicaPort | None = None
        """This replica among the others, if there are any: they have the outcomes when this one is gone."""

    def __len__(self) -> int:
        return len(self._kept)

    def begin(self, call: LongCall, work: Work) -> None:
        """Run a call."""
        self._tasks.start_soon(self._run, call, work)

    def keep(self, call: LongCall) -> bool:
        """Keep a running call whose request is answered now; False: there is no room for it, and nothing was done."""
        if not self._make_room(call.principal):
            return False
        call.is_kept = True
        call.audit.go_on()
        self._kept[call.id] = call
        self._renew(call)
        if self.replica is not None:
            self.replica.task_given(call.owner, call.id, {})
        return True

    def find(self, call_id: str, caller: Caller) -> LongCall:
        """Return the call of this caller's client that has the id.

        Raises:
            UnknownLongCall: there is none (any more).
        """
        call = self._kept.get(call_id)
        if call is None or call.owner != client_of(caller):
            raise self.unknown(call_id)
        return call

    def unknown(self, call_id: str) -> UnknownLongCall:
        """Return the error for a call that does not exist for a caller."""
        words = f"no call {plain(call_id, 40)!r} of this host is known: it was cancelled, or not asked for in time"
        return UnknownLongCall(words, remedy="call the tool again")

    async def wait(self, call: LongCall, context: RequestContext, seconds: float | None) -> bool:
        """Wait for the outcome for a request of its host (`LongCall.wait`); return whether there is one."""
        call.scope.deadline = math.inf
        try:
            return await call.wait(context, seconds)
        finally:
            if call.is_kept:
                self._renew(call)

    def give_up(self, call: LongCall) -> None:
        """Cancel a call that is running, and forget it."""
        call.is_cancelled = True
        self._forget(call)
        call.scope.cancel()

    async def quiet(self) -> None:
        """Wait until no kept call runs any more."""
        while any(not call.is_over for call in self._kept.values()):
            self._quiet = anyio.Event()
            await self._quiet.wait()

    def left(self, session: str, release: Callable[[], None]) -> None:
        """Call `release` for a host's session that has ended: now, or when no kept call runs in it any more."""
        if self._runs_in(session):
            self._leaving[session] = release
        else:
            release()

    def _runs_in(self, session: str) -> bool:
        return any(call.session == session and not call.is_over for call in self._kept.values())

    async def _run(self, call: LongCall, work: Work) -> None:
        try:
            with call.scope:
                while True:
                    await self._perform(call, work)
                    if not call.is_kept:
                        return
                    self._ended(call)
                    await call.until_resumed()
            self._forget(call)  # nobody asked for it in time; not if the gateway ends, since others have it then
        finally:
            self._kept.pop(call.id, None)
            if not call.is_over:  # it was cancelled, here or by the end of the gateway
                call.over(None, _given_up(call), Size(0, 0))
            self._ended(call)
            call.gone.set()

    async def _perform(self, call: LongCall, work: Work) -> None:
        result: dict[str, Any] | None = None
        error: Exception | None = None
        try:
            result = await work(call.params)
        except Exception as raised:  # whoever waits for the call gets it
            error = raised
            if not isinstance(raised, GatewayError) and call.is_kept:
                logger.exception("the call %s failed", call.id)
        except anyio.get_cancelled_exc_class() as cancelled:
            if call.is_kept:
                await call.audit.write(None, cancelled)
            raise
        if call.is_kept:
            try:
                await call.audit.write(result, error)
            except GatewayError as unwritten:  # the outcome is withheld for that
                result, error = None, unwritten
        call.over(result, error, Size(0, 0) if result is None or not call.is_kept else await size_in_thread(result))
        if call.is_kept and not call.asks and self.replica is not None:
            self.replica.call_ended(call.owner, call.id, outcome_json(call), self.settings.lasts)

    def _forget(self, call: LongCall) -> None:
        if self._kept.pop(call.id, None) is not None and self.replica is not None:
            self.replica.call_forgotten(call.owner, call.id)

    def _ended(self, call: LongCall) -> None:
        release, call.release = call.release, lambda: None
        release()
        self._quiet.set()
        self._forget_largest()
        if call.session in self._leaving and not self._runs_in(call.session):
            self._leaving.pop(call.session)()

    def _renew(self, call: LongCall) -> None:
        if not call.is_watched:
            call.scope.deadline = anyio.current_time() + self.settings.lasts

    def _forget_largest(self) -> None:
        """Forget the oldest results while all of them together are too large, but not the newest."""
        over = sorted((call for call in self._kept.values() if call.is_over), key=lambda call: call.changed)
        held = sum(call.size.memory for call in over)
        for call in over[:-1]:
            if held <= self.settings.max_bytes:
                return
            held -= call.size.memory
            self.give_up(call)

    def _make_room(self, principal: str) -> bool:
        """Return whether another call may be kept for a principal, forgetting the oldest outcome if one has to go."""
        counts = Counter(call.principal for call in self._kept.values())
        if counts[principal] >= self.settings.at_most_of_one:
            return self._forget_one_of(principal)
        if len(self._kept) >= self.settings.at_most:
            return self._forget_one_of(counts.most_common(1)[0][0])
        return True

    def _forget_one_of(self, principal: str) -> bool:
        theirs = (call for call in self._kept.values() if call.principal == principal)
        oldest = next((call for call in theirs if call.is_over and not call.is_watched), None)
        if oldest is None:
            return False
        self.give_up(oldest)
        return True


@asynccontextmanager
async def open_long_calls(settings: LongCallSettings | None = None) -> AsyncGenerator[LongCalls]:
    """Provide a registry inside the context. Leaving cancels every call."""
    async with background_tasks() as tasks:
        yield LongCalls(tasks, settings)


def _given_up(call: LongCall) -> UnknownLongCall:
    words = "was cancelled" if call.is_cancelled else "was given up, because nobody asked for it"
    return UnknownLongCall(f"the call {call.id} {words}", remedy="call the tool again")

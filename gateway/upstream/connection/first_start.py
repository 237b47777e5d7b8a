"""Limit the time that an upstream may take to start, with extra time if a launcher may have to install it first.

An installation does not report its progress. So the launcher's processes are observed (CPU, bytes moved, children that
come and go), and their output. As long as there are signs of work now and then, the launcher is not ended before
`timeout.install`; a start without them is abandoned some time after `timeout.start`. The first start, when nothing is
known of the upstream, gets more time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from gateway.system.background_tasks import background_tasks
from gateway.upstream.transports.launchers import Launcher, launcher_of
from gateway.upstream.transports.platforms import WINDOWS

if TYPE_CHECKING:
    from gateway.config.upstream_settings import UpstreamSettings
    from gateway.upstream.transports.platforms import Work

QUIET_FIRST = 60.0
"""Seconds without a sign of work after which a first start counts as hanging: registries are slow at times."""

QUIET = 20.0
"""The same for an upstream that was started before: only a newer version may have to be installed."""

SHOWN_FIRST = 3.0
"""Seconds after which a first start is reported as an installation."""

SHOWN = 10.0
"""The same for an upstream that was started before."""

LEAST_CPU = 0.1
"""CPU seconds that are a sign of work; a server that only waits uses less in a minute."""

LEAST_MOVED = 64 * 1024
"""Bytes read and written that are a sign of work."""

HTTP_GRACE = 5.0
"""Seconds without a message, or a sign of work, after which a program that says that it serves HTTP is given up: it
may serve a second port, and still answer on stdio."""

PERIOD = 1.0
"""Seconds between two observations."""

PERIOD_OF_TURN = 0.1
"""The same while others wait for this installation."""

TURN_QUIET = 5.0
"""Seconds without a sign of work after which the next launcher may begin."""

LONGEST_TURN = 120.0
"""Seconds after which the next launcher may begin in any case, so that one that hangs does not block the others."""


class Launched(Protocol):
    """A process that was started and has not responded yet."""

    def work(self) -> Work | None: ...
    @property
    def printed(self) -> int: ...
    @property
    def serves_http(self) -> bool: ...


class LaunchTurns:
    """Serializes first starts through launchers that share a cache: with a cold cache, four concurrent `npx` are slower
    than four in a row, and fail together.
    """

    def __init__(self) -> None:
        self._free: dict[str, anyio.Semaphore] = {}

    async def take(self, cache: str, on_waiting: Callable[[], None]) -> LaunchTurn:
        """Wait for the turn; `on_waiting` is called if another launcher has it."""
        free = self._free.setdefault(cache, anyio.Semaphore(1))
        if free.value == 0:
            on_waiting()
        await free.acquire()
        return LaunchTurn(free)


class LaunchTurn:
    """A turn to install, which can be released once."""

    def __init__(self, free: anyio.Semaphore) -> None:
        self._free: anyio.Semaphore | None = free

    def release(self) -> None:
        """Let the next launcher begin, unless that was done before."""
        free, self._free = self._free, None
        if free is not None:
            free.release()


class StartLimit:
    """The time limit on one start, over all transports tried."""

    def __init__(self, settings: UpstreamSettings) -> None:
        self.launcher: Launcher | None = launcher_of(settings.command, settings.args)
        self._settings = settings
        self._began: float | None = None
        self._until = 0.0
        self._sign = 0.0
        self._is_first = False
        self._turn: LaunchTurn | None = None

    @property
    def allowed(self) -> float:
        """The seconds that the start was given."""
        return self._until - (self._began or 0.0)

    @property
    def key(self) -> str:
        """The setting to raise if that was too short."""
        return "timeout.install" if self.launcher and self.allowed >= self._longest else "timeout.start"

    @property
    def patience(self) -> float | None:
        """Seconds for a response to the first request; None means the default."""
        return None if self.launcher is None else self._longest

    def begin(self, scope: anyio.CancelScope) -> None:
        """Start the clock if it is not running, and set the deadline of `scope`."""
        if self._began is None:
            self._began = self._sign = anyio.current_time()
            self._until = self._began + self._settings.timeout.start
        scope.deadline = self._until

    @asynccontextmanager
    async def turn(
        self, turns: LaunchTurns, *, is_first: bool, on_waiting: Callable[[Launcher], None]
    ) -> AsyncGenerator[None]:
        """Hold the turn to install inside the context, after any other first start with the same cache."""
        self._is_first = is_first
        launcher = self.launcher
        if launcher is not None and is_first:
            self._turn = await turns.take(launcher.cache, lambda: on_waiting(launcher))
        try:
            yield
        finally:
            self._pass_on()

    @asynccontextmanager
    async def kept(
        self, scope: anyio.CancelScope, launched: Launched, on_installing: Callable[[Launcher], None]
    ) -> AsyncGenerator[None]:
        """Extend the deadline of `scope` inside the context as long as the launcher is at work.

        `on_installing` is called if it takes so long that it seems to install. On exit the server has responded, and
        gets the ordinary limit for the rest of its start. A program that says that it serves HTTP, and then neither
        responds nor works, is not waited for.
        """
        try:
            async with background_tasks() as tasks:
                tasks.start_soon(self._give_up_web_server, scope, launched)
                if self.launcher is not None:
                    tasks.start_soon(self._watch, scope, launched, on_installing, self.launcher)
                yield
        finally:
            self._pass_on()
        if self.launcher is None:
            return
        self._until = scope.deadline = max(self._until, anyio.current_time() + self._settings.timeout.start)

    async def _give_up_web_server(self, scope: anyio.CancelScope, launched: Launched) -> None:
        before: tuple[Work | None, int] = (None, 0)
        sign: float | None = None
        while sign is None or anyio.current_time() - sign < HTTP_GRACE:
            await anyio.sleep(PERIOD)
            if not launched.serves_http:
                sign = None
                continue
            look = await anyio.to_thread.run_sync(launched.work), launched.printed
            if sign is None or (look[0] is not None and _is_sign(before, look)):
                before, sign = look, anyio.current_time()
        self._until = anyio.current_time()
        scope.cancel()

    async def _watch(
        self,
        scope: anyio.CancelScope,
        launched: Launched,
        on_installing: Callable[[Launcher], None],
        launcher: Launcher,
    ) -> None:
        shown_after, quiet = (SHOWN_FIRST, QUIET_FIRST) if self._is_first else (SHOWN, QUIET)
        began = anyio.current_time() if self._began is None else self._began
        is_shown = False
        before: tuple[Work | None, int] = (None, 0)
        while True:
            await anyio.sleep(PERIOD if self._turn is None else PERIOD_OF_TURN)
            look = await anyio.to_thread.run_sync(launched.work), launched.printed
            if scope.cancel_called:  # given up meanwhile: a thread that runs is waited for
                return
            if _is_sign(before, look):
                before, self._sign = look, anyio.current_time()
            now = anyio.current_time()
            by_work = min(self._sign + quiet, began + self._longest)
            self._until = scope.deadline = max(began + self._settings.timeout.start, by_work)
            alone = launcher.starts_child and not WINDOWS  # on Windows, npx is a batch file with a process of its own
            has_installed = alone and look[0] is not None and look[0].processes > 1
            if not is_shown and not (has_installed and not self._is_first) and now - began >= shown_after:
                is_shown = True
                on_installing(launcher)
            # The next launcher may begin if this one has started its server, does nothing, or takes very long.
            if has_installed or now - self._sign >= TURN_QUIET or now - began >= LONGEST_TURN:
                self._pass_on()

    @property
    def _longest(self) -> float:
        return max(self._settings.timeout.start, self._settings.timeout.install)

    def _pass_on(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.release()


def longest_start(settings: UpstreamSettings) -> float:
    """Return the maximum seconds that a start may take."""
    timeout = settings.timeout
    return max(timeout.start, timeout.install) if launcher_of(settings.command, settings.args) else timeout.start


def _is_sign(before: tuple[Work | None, int], now: tuple[Work | None, int]) -> bool:
    """Whether there was work between two observations. Missing observations count as work."""
    (earlier, printed_before), (later, printed) = before, now
    if earlier is None or later is None or printed != printed_before or earlier.who != later.who:
        return True
    return later.cpu - earlier.cpu >= LEAST_CPU or later.moved - earlier.moved >= LEAST_MOVED

"""Wait for upstreams, with a line for each on a terminal, and a Ctrl-C that ends only the waiting."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager, nullcontext
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import anyio

from gateway.cli.terminal import remark
from gateway.core.fact_words import counted, plain
from gateway.telemetry.sanitize import neutral
from gateway.upstream.transports.launchers import launcher_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gateway.upstream import Upstream

ANNOUNCED_AFTER = 2.0
"""Seconds of waiting after which it is announced where stderr is not a terminal: a silent command seems to hang."""
AGAIN_EVERY = 12.0
"""Seconds after which it is said, again and again, what is still waited for. By the first time it is known whether a
launcher installs again what it has started before: it is out of its cache."""

_PER_SECOND = 4
_LONGEST = 300
_STYLES = {"ready": "green", "failed": "red", "disabled": "dim", "sleeping": "dim", "login": "yellow"}


class Wait:
    """Waits for upstreams to start.

    `visible`: show progress if stderr is a terminal, or else announce in one line what is waited for. `ctrl_c`: the
    effect of Ctrl-C meanwhile, in words.
    """

    def __init__(self, *, visible: bool, ctrl_c: str) -> None:
        self._visible = visible and sys.stderr.isatty()
        self._announced = visible and not self._visible
        self._ctrl_c = ctrl_c
        self._scope: anyio.CancelScope | None = None
        self.outcomes: dict[str, str] = {}
        """The outcome of each upstream's first start, by its name. Another start may be in progress by now."""

    def interrupt(self) -> bool:
        """End the waiting. Return False if nothing is being waited for."""
        if self._scope is None or self._scope.cancel_called:
            return False
        self._scope.cancel()
        return True

    async def settled(self, upstreams: Iterable[Upstream]) -> None:
        """Wait until the start of each upstream has ended. Each has a limit of its own."""
        waited = tuple(upstreams)

        async def settle(upstream: Upstream) -> None:
            await upstream.ready(math.inf)
            self.outcomes[upstream.name] = standing_words(upstream)

        with self.shown(waited):
            async with anyio.create_task_group() as tasks:
                for upstream in waited:
                    tasks.start_soon(settle, upstream)

    @contextmanager
    def shown(self, upstreams: Collection[Upstream]) -> Generator[None]:
        """Context manager that shows the upstreams' progress; `interrupt` cancels its body."""
        began = time.monotonic()
        live = self._live(lambda: _table(upstreams, began, self._ctrl_c)) if upstreams else nullcontext()
        with live, self._announcing(upstreams), anyio.CancelScope() as self._scope:
            yield
        self._scope = None

    @contextmanager
    def _announcing(self, upstreams: Collection[Upstream]) -> Generator[None]:
        began = time.monotonic()
        again = self._repeatedly(lambda: _say_pending(upstreams, time.monotonic() - began))
        with self._later(lambda: _announce(upstreams)), again:
            yield

    @contextmanager
    def _repeatedly(self, announce: Callable[[], None]) -> Generator[None]:
        """Context manager that calls `announce` now and then while its body runs, if nothing is shown meanwhile."""

        def repeat(done: Event) -> None:
            while not done.wait(AGAIN_EVERY):
                announce()

        with self._beside(repeat):
            yield

    @contextmanager
    def _later(self, announce: Callable[[], None]) -> Generator[None]:
        """Context manager that calls `announce` if its body takes long and nothing is shown meanwhile."""

        def wait(done: Event) -> None:
            if not done.wait(ANNOUNCED_AFTER):
                announce()

        with self._beside(wait):
            yield

    @contextmanager
    def _beside(self, run: Callable[[Event], None]) -> Generator[None]:
        """Context manager that runs this in a thread, until its event is set, if nothing is shown meanwhile."""
        done = Event()
        if self._announced:
            Thread(target=run, args=(done,), daemon=True).start()
        try:
            yield
        finally:
            done.set()

    @contextmanager
    def line(self, words: Callable[[], str]) -> Generator[None]:
        """Context manager that shows one line with the seconds that have passed, or else announces it once."""
        from rich.text import Text

        began = time.monotonic()

        def rendered() -> RenderableType:
            text = f"{words()}, {duration_words(time.monotonic() - began)}"
            return Text(neutral(plain(text, _LONGEST)), no_wrap=True, overflow="ellipsis")

        with self._live(rendered), self._later(lambda: remark(plain(words(), _LONGEST))):
            yield

    def _live(self, render: Callable[[], RenderableType]) -> Any:
        if not self._visible:
            return nullcontext()
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        return Live(
            get_renderable=render,
            console=console,
            transient=True,
            refresh_per_second=_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )


def _announce(upstreams: Collection[Upstream]) -> None:
    """Print the upstreams that are still starting, and those whose turn comes after them."""
    pending = [upstream for upstream in upstreams if upstream.state.is_pending]
    starting = ", ".join(repr(upstream.name) for upstream in pending if not upstream.is_queued)
    queued = ", ".join(repr(upstream.name) for upstream in pending if upstream.is_queued)
    if pending:
        names = ", then ".join(filter(None, (starting, queued)))
        first = any(_may_install(upstream) and not _has_started_before(upstream) for upstream in pending)
        remark(f"starting {names}" + (", which may take minutes where something has to be installed" if first else ""))


def _say_pending(upstreams: Collection[Upstream], passed: float) -> None:
    """Name the upstreams that are still starting after `passed` seconds, and say if some are installed again."""
    pending = [upstream for upstream in upstreams if upstream.state.is_pending]
    again = any(one.state.value == "installing" and _has_started_before(one) for one in pending)
    if pending:
        names = ", ".join(repr(upstream.name) for upstream in pending)
        words = ", which may take minutes where something has to be installed again" if again else ""
        remark(f"still starting {names}, {duration_words(passed)}{words}")


def _may_install(upstream: Upstream) -> bool:
    return launcher_of(upstream.settings.command, upstream.settings.args) is not None


def _has_started_before(upstream: Upstream) -> bool:
    """Whether its tools are remembered from another start with these settings."""
    return bool(upstream.tools())


def standing_words(upstream: Upstream) -> str:
    """Describe an upstream's state in one line: `installing for 42 s: npx may have to install it first`."""
    state = upstream.state.value
    passed = time.time() - upstream.counts.since
    if upstream.is_queued:
        return f"{upstream.cause}, for {duration_words(passed)}"
    if state == "login" and upstream.cause:
        return upstream.cause
    if upstream.state.is_pending:
        seconds = passed - upstream.waited
        state += f" for {duration_words(seconds)}" if seconds >= 1 else ""
    return f"{state}: {upstream.cause}" if upstream.cause else state


def is_there(upstream: Upstream) -> bool:
    """Whether the upstream's lists are current, or were when it was put to sleep."""
    return upstream.state.value in ("ready", "sleeping")


def _table(upstreams: Collection[Upstream], began: float, ctrl_c: str) -> RenderableType:
    """A line for each upstream; those waited for come first, so that they are visible on a small screen."""
    from rich.console import Group
    from rich.text import Text

    ordered = sorted(upstreams, key=lambda upstream: not upstream.state.is_pending)
    width = min(24, max((len(upstream.name) for upstream in ordered), default=0))
    lines: list[Text] = []
    for upstream in ordered:
        words = neutral(plain(standing_words(upstream), _LONGEST))
        style = _STYLES.get(upstream.state.value, "")
        # What ends with a remedy is folded: the remedy would be cut.
        is_cut = upstream.failure is None
        text = f"  {upstream.name:<{width}}  {words}"
        lines.append(Text(text, style=style, no_wrap=is_cut, overflow="ellipsis" if is_cut else "fold"))
    left = sum(upstream.state.is_pending for upstream in upstreams)
    passed = duration_words(time.monotonic() - began)
    total = f"waiting for {left} of {counted(len(upstreams), 'upstream')}, {passed} (Ctrl-C: {ctrl_c})"
    return Group(Text(total, style="bold", no_wrap=True, overflow="ellipsis"), *lines)


def duration_words(seconds: float) -> str:
    """Return the duration in words: `42 s`, `2 min 5 s`."""
    whole = max(0, int(seconds))
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"

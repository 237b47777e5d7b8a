"""The request to stop a gateway over HTTP: when its running requests have ended, or at once."""

from collections.abc import Callable

import anyio

from gateway.cli.exit_codes import DONE, INTERRUPTED
from gateway.cli.terminal import remark


class StopRequest:
    """Asks a gateway that serves over HTTP to stop when its running requests have ended."""

    def __init__(self) -> None:
        self.drain: Callable[[], bool] | None = None
        self.was_interrupted = False

    def ask(self) -> bool:
        """Ask it; false if it does not serve yet, or has been asked before."""
        return self.drain is not None and self.drain()

    def interrupt(self) -> bool:
        """Do the same for Ctrl-C."""
        self.was_interrupted = True
        if not self.ask():
            return False
        remark("stopping when running requests have ended; Ctrl-C again ends it at once")
        return True

    @property
    def code(self) -> int:
        """The exit code of a gateway that has stopped."""
        return INTERRUPTED if self.was_interrupted else DONE


def stop_or_end(stop: StopRequest, whole: anyio.CancelScope) -> None:
    """Stop gently; told again, at once."""
    if not stop.ask():
        whole.cancel()

"""The progress of a start: it may wait for its turn, and for a launcher that has to install the server first."""

from collections.abc import Callable

import anyio

from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.status import ConnectionStatus
from gateway.upstream.transports.launchers import Launcher


class StartProgress:
    """Enters the states of a start, and logs why it takes longer, except after a failure: that stays the last word."""

    def __init__(self, status: ConnectionStatus, log: Callable[[str], None]) -> None:
        self.is_queued = False
        """Whether it is waiting for another upstream to be installed."""
        self.waited = 0.0
        """Seconds that the last start waited for its turn; set when its turn comes."""
        self._since = 0.0
        self._status = status
        self._log = log

    def await_turn(self, launcher: Launcher) -> None:
        """Wait for others with the same launcher."""
        cause = f"waits for its turn ({launcher.name})"
        if not self._status.begin_again(f"it is tried again when its turn comes ({launcher.name})"):
            self.is_queued, self._since = True, anyio.current_time()
            self._status.enter(UpstreamState.STARTING, cause)
            self._log(cause)

    def take_turn(self) -> None:
        """Start: its turn has come, or it did not have to wait for one."""
        self.waited = anyio.current_time() - self._since if self.is_queued else 0.0
        if self.is_queued and self._status.state is UpstreamState.STARTING:
            self._status.enter(UpstreamState.STARTING)
        self.is_queued = False
        self._status.begin_again(None)

    def install(self, launcher: Launcher) -> None:
        """Wait for a launcher that may have to install the server."""
        cause = f"{launcher.name} may have to install it first"
        if not self._status.begin_again(f"it is being tried again: {cause}"):
            self._status.enter(UpstreamState.INSTALLING, cause)
            self._log(f"installing: {cause}")

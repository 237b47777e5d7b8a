"""What the log says of a start that takes longer: why, unless a failure was said before and is all that is known."""

import pytest

from gateway.errors import Failure, FailureCode, UpstreamUnavailable
from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.start_progress import StartProgress
from gateway.upstream.connection.states import UpstreamState
from gateway.upstream.connection.status import ConnectionStatus
from gateway.upstream.transports.launchers import Launcher

NPX = Launcher("npx", "npm")
FAILED = Failure(UpstreamUnavailable, FailureCode.UNKNOWN, "exited with code 1")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("failed", "told"),
    [(False, ["waits for its turn (npx)", "installing: npx may have to install it first"]), (True, [])],
)
async def test_a_failure_stays_the_last_word_until_something_else_is_known(failed: bool, told: list[str]) -> None:
    said: list[str] = []
    status = ConnectionStatus("notes", Counts(), enabled=True, on_change=lambda: None)
    if failed:
        status.enter(UpstreamState.FAILED, FAILED)
    progress = StartProgress(status, said.append)
    progress.await_turn(NPX)
    progress.take_turn()
    progress.install(NPX)
    assert said == told
    assert (status.state is UpstreamState.FAILED) is failed

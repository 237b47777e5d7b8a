"""Where a connection stands, why, and how a call is told of it."""

import pytest

from gateway.errors import Failure, FailureCode, UpstreamLost
from gateway.upstream import UpstreamState
from gateway.upstream.connection.counters import Counts
from gateway.upstream.connection.status import ConnectionStatus

pytestmark = pytest.mark.anyio

REFUSED = Failure(UpstreamLost, FailureCode.CONNECTION_REFUSED, "connection refused by http://x", "check the url")
EXITED = Failure(UpstreamLost, FailureCode.EXITED, "exited with code 1")


def status(*, enabled: bool = True) -> ConnectionStatus:
    return ConnectionStatus("x", Counts(), enabled=enabled, on_change=lambda: None)


async def test_a_failure_stays_the_reason_while_it_is_tried_again() -> None:
    one = status()
    one.enter(UpstreamState.FAILED, REFUSED)
    one.enter(UpstreamState.STARTING, one.why)
    assert one.failure is REFUSED
    assert one.cause == "connection refused by http://x (check the url)"
    error = one.unavailable()
    assert error.failure is REFUSED
    assert str(error) == "upstream 'x': is still starting: connection refused by http://x (check the url)"


async def test_a_failure_without_a_remedy_has_that_of_the_state() -> None:
    one = status()
    one.enter(UpstreamState.FAILED, EXITED)
    assert one.cause == "exited with code 1"
    assert str(one.unavailable()).startswith("upstream 'x': is not available: exited with code 1 (the gateway keeps")


async def test_what_is_no_failure_has_a_cause_and_no_code() -> None:
    one = status(enabled=False)
    assert (one.failure, one.cause) == (None, "disabled in the configuration (enabled = false)")
    assert one.unavailable().failure.code is FailureCode.UNAVAILABLE

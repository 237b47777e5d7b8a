"""Who is waited for, and who is called missing."""

from typing import Any

import anyio
import pytest

from gateway.core.model.caller import Caller
from gateway.errors import Failure, FailureCode, UpstreamLost
from gateway.routing.availability import Availability
from gateway.upstream import UpstreamState

pytestmark = pytest.mark.anyio


def upstreams(fake_upstream: Any, fake_upstreams: Any, **states: UpstreamState) -> Any:
    members = [fake_upstream(name, cause="because") for name in states]
    for member, state in zip(members, states.values(), strict=True):
        member.state = state
    return fake_upstreams(members)


@pytest.fixture
def fake_upstreams() -> Any:
    class Members(dict[str, Any]):
        def __init__(self, members: list[Any]) -> None:
            super().__init__({member.name: member for member in members})

    return Members


async def test_one_that_starts_is_not_waited_for_when_its_tools_are_known(
    fake_upstream: Any, fake_upstreams: Any
) -> None:
    starting = UpstreamState.STARTING
    members = upstreams(fake_upstream, fake_upstreams, known=starting, unknown=starting)
    members["known"].tool_list = [{"name": "draw"}]
    with anyio.fail_after(30):
        await Availability(members).first("default", 0.05, Caller())
    assert (members["known"].awaited, members["unknown"].awaited) == (0, 1)


async def test_one_that_sleeps_is_not_missing(fake_upstream: Any, fake_upstreams: Any) -> None:
    states = {"rests": UpstreamState.SLEEPING, "fails": UpstreamState.FAILED, "off": UpstreamState.DISABLED}
    members = upstreams(fake_upstream, fake_upstreams, **states)
    assert Availability(members).missing(Caller()) == ["fails (failed: because)"]


@pytest.mark.parametrize("state", UpstreamState)
async def test_every_state_has_a_remedy(fake_upstream: Any, fake_upstreams: Any, state: UpstreamState) -> None:
    members = upstreams(fake_upstream, fake_upstreams, charts=state)
    error = Availability(members).unavailable("charts", "tool 'draw'", Caller())
    words = "waits for a login" if state is UpstreamState.LOGIN else f"is {state.value}: because"
    assert error.message == f"upstream 'charts': tool 'draw' cannot be reached, the upstream {words}"
    assert error.remedy


async def test_a_failure_is_told_with_its_own_remedy_and_only_with_that(
    fake_upstream: Any, fake_upstreams: Any
) -> None:
    members = upstreams(fake_upstream, fake_upstreams, charts=UpstreamState.FAILED)
    members["charts"].failure = Failure(UpstreamLost, FailureCode.NOT_FOUND, "answered HTTP 404", "check the path")
    error = Availability(members).unavailable("charts", "tool 'draw'", Caller())
    assert str(error) == (
        "upstream 'charts': tool 'draw' cannot be reached, the upstream is failed: answered HTTP 404 (check the path)"
    )
    assert error.failure.code is FailureCode.NOT_FOUND

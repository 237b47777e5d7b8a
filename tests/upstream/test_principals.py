"""The upstreams of principals: one for each, and none for longer than it is used."""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import pytest

from gateway.upstream.principals import PrincipalUpstreams

pytestmark = pytest.mark.anyio


@dataclass(eq=False)
class Member:
    principal: str
    is_busy: bool = False
    stopped: anyio.Event = field(default_factory=anyio.Event)

    @property
    def is_stopped(self) -> bool:
        return self.stopped.is_set()

    def stop(self) -> None:
        self.stopped.set()


def principals(began: list[Member], most: int = 3) -> PrincipalUpstreams[Member]:
    begin: Callable[[Member], None] = began.append
    return PrincipalUpstreams(Member, begin, most)


async def test_each_principal_has_one_and_keeps_it() -> None:
    began: list[Member] = []
    members = principals(began)
    assert members.of("alice") is members.of("alice")
    assert members.of("bob") is not members.of("alice")
    assert [member.principal for member in began] == ["alice", "bob"]
    assert {member.principal for member in members} == {"alice", "bob"}
    members.drop("alice")
    members.drop("nobody")
    assert began[0].is_stopped
    assert members.of("alice") is not began[0]


async def test_with_too_many_the_least_recently_used_gives_way_unless_it_is_busy() -> None:
    began: list[Member] = []
    members = principals(began)
    alice, bob, carol = (members.of(name) for name in ("alice", "bob", "carol"))
    members.of("alice")
    bob.is_busy = True
    members.of("dave")
    assert [member.is_stopped for member in (alice, bob, carol)] == [False, False, True]
    for member in members:
        member.is_busy = True
    members.of("erin")
    assert not any(member.is_stopped for member in members)


async def test_one_that_nobody_uses_is_stopped() -> None:
    began: list[Member] = []
    members = principals(began)
    alice, bob = members.of("alice"), members.of("bob")
    bob.is_busy = True
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(members.expire, lambda: 0.05)
            await alice.stopped.wait()
            tasks.cancel_scope.cancel()
    assert not bob.is_stopped
    assert list(members) == [bob]

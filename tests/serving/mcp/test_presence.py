"""Who counts as connected."""

from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from gateway.core.apps import DECLARED
from gateway.core.model.caller import Caller
from gateway.serving.mcp.presence import PRESENCE_SECONDS, Presence

pytestmark = pytest.mark.anyio

OLD = Caller(revision="2025-06-18", client_name="old")
NEW = Caller(revision="2026-07-28", client_name="new")


class Clock:
    now = 1_000.0

    def __call__(self):
        self.now += 1
        return self.now


async def test_a_host_is_there_as_long_as_its_connection():
    presence = Presence(Clock())
    async with AsyncExitStack() as ending:
        for _ in range(3):
            presence.asked(OLD, "connection", ending)
        (host,) = presence.connected_hosts()
        assert (host.caller, host.since, host.last, host.requests) == (OLD, 1_001.0, 1_003.0, 3)
    assert presence.connected_hosts() == []


async def test_a_host_without_a_connection_is_there_as_long_as_it_asks_now_and_then():
    clock = Clock()
    presence = Presence(clock)
    presence.asked(NEW)
    clock.now += PRESENCE_SECONDS / 2
    presence.asked(NEW)
    clock.now += PRESENCE_SECONDS - 10
    assert [host.requests for host in presence.connected_hosts()] == [2]
    clock.now += 20
    assert presence.connected_hosts() == []


async def test_two_programs_of_one_name_of_which_one_shows_pages_are_two_hosts():
    presence = Presence()
    for caller in (replace(NEW, capabilities=DECLARED), NEW, replace(NEW, capabilities=DECLARED)):
        presence.asked(caller)
    assert [host.requests for host in presence.connected_hosts()] == [2, 1]


async def test_hosts_that_invent_names_are_not_remembered_without_end():
    presence = Presence()
    for number in range(3_000):
        presence.asked(Caller(revision="2026-07-28", client_name=f"name {number}"))
    assert len(presence.connected_hosts()) == 1_000
    assert presence.connected_hosts()[-1].caller.client_name == "name 2999"

"""Telling hosts of changes: every one that lives, none that is gone, and not waiting for one that does not read."""

from typing import Any

import anyio
import pytest
from mcp.server.connection import Connection
from mcp.server.session import ServerSession

from gateway.core.model.caller import Caller
from gateway.core.model.change import Change
from gateway.serving.mcp import announce_changes
from gateway.serving.mcp.announce_changes import Announcer
from gateway.upstream.attendance import Attendance

pytestmark = pytest.mark.anyio


class Watched:
    """A service that lets everything be watched, and remembers what is."""

    def __init__(self):
        self.uris = []
        self.attendance = Attendance()

    async def watch(self, uri, caller):
        self.uris.append(uri)
        return lambda: self.uris.remove(uri)

    def hears(self, caller, change):
        return caller.client_name != "deaf" and change.principal in (None, caller.principal)

    def attending(self, host):
        return self.attendance.attending(host)

    def left(self, session):
        raise AssertionError("these hosts have no session")


SERVICE: Any = Watched()


class Host:
    """The outbound side of a connection; notes what it is sent, and may refuse to take it."""

    def __init__(self, *, reads=True):
        self.told = []
        self.reads = reads
        self.news = anyio.Event()
        self.connection = Connection.for_loop(self)

    async def send_raw_request(self, method, params, opts=None):
        raise AssertionError(f"nobody asked for {method}")

    async def notify(self, method, params, opts=None):
        if not self.reads:
            await anyio.sleep_forever()
        self.told.append((method, params))
        self.news.set()

    async def told_times(self, count):
        while len(self.told) < count:
            self.news = anyio.Event()
            await self.news.wait()

    def follow(self, announcer, name=None, principal="local"):
        outbound: Any = self
        caller = Caller(session=None, client_name=name, principal=principal)
        announcer.follow(ServerSession(outbound, self.connection), caller)


async def test_every_live_host_is_told_and_one_that_does_not_read_delays_nobody(monkeypatch):
    monkeypatch.setattr(announce_changes, "_PATIENCE_SECONDS", 600.0)  # the others do not wait for that to pass
    announcer, stuck, first, second = Announcer(SERVICE), Host(reads=False), Host(), Host()
    with anyio.fail_after(30):
        async with announcer.running():
            for host in (stuck, first, second):
                host.follow(announcer)
            for count in (1, 2):
                announcer.changed(Change("tools"))
                await first.told_times(count)
                await second.told_times(count)
    assert first.told == second.told == [("notifications/tools/list_changed", None)] * 2


async def test_changes_that_come_together_are_told_once_each():
    announcer, host = Announcer(SERVICE), Host()
    with anyio.fail_after(30):
        async with announcer.running():
            host.follow(announcer)
            host.follow(announcer)
            for kind in ("tools", "resources", "tools", "tools"):
                announcer.changed(Change(kind))
            await host.told_times(2)
            announcer.changed(Change("tools"))
            await host.told_times(3)
    kinds = [method.split("/")[1] for method, _ in host.told]
    assert sorted(kinds[:2]) == ["resources", "tools"]
    assert kinds[2:] == ["tools"]


async def test_a_host_whose_connection_has_ended_is_told_nothing():
    announcer, gone, here = Announcer(SERVICE), Host(), Host()
    with anyio.fail_after(30):
        async with announcer.running():
            gone.follow(announcer)
            here.follow(announcer)
            await gone.connection.exit_stack.aclose()
            announcer.changed(Change("tools"))
            await here.told_times(1)
    assert gone.told == []


async def test_a_changed_resource_is_told_to_those_who_watch_it_until_they_are_gone():
    service: Any = Watched()
    watching, other = Host(), Host()
    announcer = Announcer(service)
    with anyio.fail_after(30):
        async with announcer.running():
            for host in (watching, other):
                host.follow(announcer)
            await announcer.subscribe(watching.connection, "a://1", Caller())
            await announcer.subscribe(watching.connection, "a://2", Caller())
            announcer.unsubscribe(watching.connection, "a://2")
            assert service.uris == ["a://1"]
            announcer.changed(Change("updated:a://2"))
            announcer.changed(Change("updated:a://1"))
            await watching.told_times(1)
            await watching.connection.exit_stack.aclose()
            assert service.uris == []
    assert watching.told == [("notifications/resources/updated", {"uri": "a://1"})]
    assert other.told == []


async def test_a_host_that_makes_nothing_of_it_is_not_told():
    announcer, deaf, other = Announcer(SERVICE), Host(), Host()
    with anyio.fail_after(30):
        async with announcer.running():
            deaf.follow(announcer, "deaf")
            other.follow(announcer)
            announcer.changed(Change("tools"))
            await other.told_times(1)
    assert deaf.told == []


async def test_changes_of_one_list_are_told_once_to_whom_they_concern():
    announcer, alice, bob = Announcer(SERVICE), Host(), Host()
    with anyio.fail_after(30):
        async with announcer.running():
            alice.follow(announcer, principal="alice")
            bob.follow(announcer, principal="bob")
            announcer.changed(Change("tools", "mail", "alice"))
            announcer.changed(Change("tools", "docs", "alice"))
            await alice.told_times(1)
            announcer.changed(Change("prompts"))
            await alice.told_times(2)
            await bob.told_times(1)
    assert [method for method, _ in bob.told] == ["notifications/prompts/list_changed"]
    assert len(alice.told) == 2


async def test_what_a_host_hears_of_follows_its_latest_request():
    announcer, host, other = Announcer(SERVICE), Host(), Host()
    with anyio.fail_after(30):
        async with announcer.running():
            host.follow(announcer, principal="alice")
            other.follow(announcer, principal="alice")
            host.follow(announcer, principal="bob")
            announcer.changed(Change("tools", "mail", "alice"))
            await other.told_times(1)
    assert host.told == []

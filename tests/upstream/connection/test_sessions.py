"""Which connection serves whom: real links that are never run, and real processes that say which one they are."""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import Timeouts, UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import Era
from gateway.errors import UpstreamUnavailable
from gateway.upstream import Upstream, Upstreams, UpstreamState, pool
from gateway.upstream.attendance import Attendance
from gateway.upstream.connection.client_identity import ClientIdentity
from gateway.upstream.connection.deadlines import Deadline
from gateway.upstream.connection.negotiate_era import Opening
from gateway.upstream.connection.owners import client_of, owner_by_session
from gateway.upstream.connection.request_context import RequestContext
from gateway.upstream.connection.sessions import Eras, Sessions
from gateway.upstream.connection.supervised_connection import SupervisedConnection
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.redaction import Secrets

pytestmark = pytest.mark.anyio

LIMITS = Timeouts(call=10, idle=10)
BRIDGE = Path(__file__).parents[2] / "servers" / "bridge_server.py"

ANN = Caller(revision="2025-11-25", client_name="host", session="ann-1")
BOB = replace(ANN, client_name="another", session="bob-1")
LEE = replace(ANN, client_name="a third", session="lee-1")
EVE = replace(ANN, principal="eve", session="eve-1")
MODERN = Caller(revision="2026-07-28", client_name="host")
ASKABLE: Mapping[str, Any] = {"sampling": {}}


def bridge(*flags: str, **settings: Any) -> UpstreamSettings:
    """Settings that start tests/servers/bridge_server.py over stdio."""
    return UpstreamSettings(command=sys.executable, args=(str(BRIDGE), *flags), **settings)


class House:
    """The sessions of one upstream over links that nobody runs; `begun` are those that were made."""

    def __init__(self, **settings: Any) -> None:
        given = settings if "url" in settings else {"command": "x", **settings}
        self.subject = Subject("x", UpstreamSettings(**given), Secrets(UpstreamSettings(command="x")))
        self.begun: list[SupervisedConnection] = []
        self.ended: list[SupervisedConnection] = []
        self.has_ended = anyio.Event()
        self.eras = Eras()
        self.default = self.link(ClientIdentity(), "handshake", is_default=True)
        self.there = Attendance()
        self.sessions = Sessions(self.default, self.eras, self.link, self.begun.append, self.end, self.there.has)

    def link(self, identity: ClientIdentity, era: Era, *, is_default: bool = False) -> SupervisedConnection:
        return SupervisedConnection(
            self.subject,
            identity=lambda: identity,
            first=lambda: self.eras.for_host(era),
            on_event=lambda *_: None,
            is_default=is_default,
        )

    def end(self, link: SupervisedConnection) -> None:
        self.ended.append(link)
        self.has_ended.set()

    def of(self, caller: Caller) -> SupervisedConnection:
        return self.sessions.of(caller)[0]

    def opens(self, link: SupervisedConnection, era: Era) -> SupervisedConnection:
        """A link is connected, and this era is spoken on it."""
        link.opening = Opening(era, "2026-07-28" if era == "modern" else "2025-11-25")
        link.status.state = UpstreamState.READY
        self.eras.found(link.tried, era)
        self.sessions.opened(link)
        return link

    @property
    def kept(self) -> list[SupervisedConnection]:
        return [self.default, *self.sessions.connections()]


# -- owners


async def test_the_standing_link_is_the_first_owners_and_nobody_elses() -> None:
    house = House()
    house.opens(house.default, "handshake")
    assert house.of(ANN) is house.default
    assert house.of(BOB) is not house.default
    assert house.of(ANN) is house.default
    assert house.of(BOB) is house.begun[0]
    assert len(house.begun) == 1


async def test_the_standing_link_is_not_for_a_host_that_declares_something_else() -> None:
    house = House()
    house.opens(house.default, "handshake")
    able = house.of(replace(ANN, capabilities=ASKABLE))
    assert able is not house.default
    assert able.identity.capabilities == ASKABLE
    assert house.of(BOB) is house.default


async def test_the_standing_link_is_not_for_a_host_of_the_other_era() -> None:
    house = House()
    house.opens(house.default, "handshake")
    house.eras.silent.clear()
    assert house.of(MODERN) is not house.default


async def test_before_it_is_connected_the_standing_link_is_for_hosts_of_the_era_that_it_will_try() -> None:
    house = House()
    assert house.of(MODERN) is not house.default
    assert house.of(ANN) is house.default


async def test_what_a_host_declares_decides_beside_its_owner() -> None:
    house = House(session="shared")
    plain, able = house.of(ANN), house.of(replace(ANN, capabilities=ASKABLE))
    assert plain is not able
    assert house.of(BOB) is plain
    assert house.of(replace(EVE, capabilities=ASKABLE)) is able


@pytest.mark.parametrize(
    ("rule", "same", "other"),
    [
        ("client", replace(ANN, session="ann-2"), replace(ANN, profile="cline")),
        (None, ANN, replace(ANN, session="ann-2")),
        ("host-session", ANN, replace(ANN, session="ann-2")),
        ("principal", BOB, EVE),
        ("shared", EVE, None),
        ("header:X-User", replace(BOB, headers={"x-user": "u"}), replace(EVE, headers={"x-user": "u"})),
    ],
)
async def test_each_rule_says_who_has_the_same_session(rule: str | None, same: Caller, other: Caller | None) -> None:
    house = House(session=rule)
    first = replace(ANN, headers={"x-user": "u"})
    link = house.of(first)
    assert house.of(first) is link
    if rule != "header:X-User":
        assert house.of(same) is link
    else:
        assert house.of(same) is link
        assert house.of(replace(first, headers={"x-user": "v"})) is not link
    if other is not None:
        assert house.of(other) is not link


async def test_a_connection_that_is_lost_has_no_owner_any_more_and_its_successor_is_free() -> None:
    house = House()
    house.opens(house.default, "handshake")
    assert house.of(ANN) is house.default
    house.sessions.lost()
    assert house.of(BOB) is house.default


# -- hosts that come and go


@pytest.mark.parametrize(
    "next_one",
    [
        replace(ANN, session="ann-2"),
        replace(ANN, session=None),
        replace(ANN, client_name="another", session="n"),
        EVE,
        MODERN,
    ],
)
async def test_what_a_session_left_is_for_nobody_whatever_name_and_token_the_next_one_has(next_one: Caller) -> None:
    house = House()
    house.of(BOB)  # has the default connection
    link = house.of(ANN)
    house.sessions.left("ann-1")
    assert house.ended == [link]
    assert house.of(next_one) is not link


async def test_a_client_that_may_have_it_finds_its_state_in_each_of_its_sessions() -> None:
    house = House(session="client")
    house.of(BOB)
    link = house.of(ANN)
    for number in range(2, 5):
        house.sessions.left(f"ann-{number - 1}")
        assert house.of(replace(ANN, session=f"ann-{number}")) is link
    assert house.ended == []
    for other in (EVE, replace(ANN, profile="cline"), replace(ANN, client_name="another")):
        assert house.of(other) is not link


async def test_two_sessions_of_one_client_that_are_open_at_once_do_not_share() -> None:
    house = House()
    house.of(BOB)
    first, second = house.of(ANN), house.of(replace(ANN, session="ann-2"))
    assert first is not second
    house.sessions.left("ann-1")
    assert house.ended == [first]
    assert house.of(replace(ANN, session="ann-2")) is second


async def test_two_hosts_without_sessions_share_neither_with_another_name_nor_with_another_path() -> None:
    house = House()
    there = replace(MODERN, profile="claude-code")
    assert house.of(there) is house.of(there)
    others = [replace(there, profile="cline"), replace(there, profile=None), replace(there, client_name="another")]
    assert len({house.of(there), *map(house.of, others)}) == 4


async def test_a_session_that_is_the_hosts_alone_ends_with_it() -> None:
    house = House(session="host-session")
    house.of(BOB)
    link = house.of(ANN)
    house.sessions.left("ann-1")
    assert house.ended == [link]
    assert link not in house.kept


@pytest.mark.parametrize("rule", ["principal", "shared", "header:X-User"])
async def test_the_end_of_a_hosts_session_ends_nothing_that_is_not_its_own(rule: str) -> None:
    house = House(session=rule)
    caller = replace(ANN, headers={"x-user": "u"})
    link = house.of(caller)
    house.sessions.left("ann-1")
    assert house.of(replace(caller, session="ann-2")) is link
    assert house.ended == []


# -- bounds


async def test_all_sessions_in_use_is_an_error_that_names_the_setting() -> None:
    house = House(max_sessions=2)
    calling, there = house.of(ANN), house.of(BOB)
    with calling.counts.call(), house.there.attending(owner_by_session("bob-1")):
        with pytest.raises(UpstreamUnavailable, match=r"all 2 sessions .*max_sessions.*upstreams\.x\.max_sessions"):
            house.of(LEE)
        assert house.of(ANN) is calling
        assert house.of(BOB) is there


async def test_a_call_that_the_upstream_works_on_is_cut_off_for_nobody() -> None:
    house = House(max_sessions=2)
    refused = pytest.raises(UpstreamUnavailable, match=r"all 2 sessions .*max_sessions")
    with house.of(ANN).counts.call(), house.of(BOB).counts.call(), refused:
        house.of(EVE)
    assert house.ended == []


async def test_a_stateless_host_that_listens_keeps_its_session() -> None:
    house = House(max_sessions=1)
    link = house.of(MODERN)
    other = replace(MODERN, client_name="other")
    with house.there.attending(client_of(MODERN)), pytest.raises(UpstreamUnavailable, match="max_sessions"):
        house.of(other)
    assert house.of(MODERN) is link
    assert house.of(other) is not link


async def test_hosts_that_left_without_a_word_make_room_the_longest_unused_first() -> None:
    house = House(max_sessions=3)
    house.opens(house.default, "handshake")
    links = [house.of(caller) for caller in (ANN, BOB, LEE)]
    links[0].last_use[0], links[1].last_use[0], links[2].last_use[0] = 3.0, 2.0, 1.0
    newcomer = house.of(replace(ANN, client_name="newcomer", session="n"))
    assert house.ended == [links[2]]
    assert house.of(BOB) is links[1]
    assert newcomer in house.kept


async def test_the_newcomers_own_client_makes_room_before_anybody_else() -> None:
    house = House(max_sessions=3)
    house.opens(house.default, "handshake")
    links = [house.of(caller) for caller in (BOB, EVE, ANN)]
    for age, link in enumerate(links):
        link.last_use[0] = float(age)
    for number in range(2, 6):  # however often it comes, it displaces none but itself
        link = house.of(replace(ANN, session=f"ann-{number}"))
        assert house.ended[-1] is links[2] or number > 2
    assert house.of(BOB) is links[0]
    assert house.of(EVE) is links[1]
    assert house.of(replace(ANN, session="ann-5")) is link
    assert len(house.ended) == 4


def names(principal: str, number: int) -> list[Caller]:
    """So many hosts of one principal, each under a name of its own."""
    return [
        replace(ANN, principal=principal, client_name=f"name {each}", session=f"{principal}-{each}")
        for each in range(number)
    ]


async def test_many_names_of_one_principal_cost_no_other_principal_its_session() -> None:
    house = House(max_sessions=4)
    link = house.of(EVE)
    link.last_use[0] = -1.0  # nobody has waited longer
    last = [house.of(caller) for caller in names("greedy", 12)]
    assert house.of(EVE) is link
    assert len(house.ended) == 9
    assert link not in house.ended
    assert len({*last} - {*house.ended}) == 3


async def test_a_principal_without_a_session_gets_one_of_those_that_another_has_with_open_streams() -> None:
    house = House(max_sessions=4)
    house.opens(house.default, "handshake")
    greedy = names("greedy", 4)
    links = [house.of(caller) for caller in greedy]
    for age, link in enumerate(links):
        link.last_use[0] = float(age)
    with ExitStack() as streams:
        for caller in greedy:
            streams.enter_context(house.there.attending(f"session {caller.session}"))
        for number in range(2):  # until both have as many
            one = replace(EVE, session=f"eve-{number}", client_name=f"name {number}")
            streams.enter_context(house.there.attending(f"session eve-{number}"))
            assert house.of(one) in house.kept
        assert [house.sessions.there(caller) for caller in greedy] == [None, None, *links[2:]]
        for refused in (greedy[0], replace(EVE, session="eve-3", client_name="a third")):
            with pytest.raises(UpstreamUnavailable, match="all 4 sessions"):
                house.of(refused)


async def test_a_session_whose_calls_all_wait_for_absent_hosts_makes_way_and_one_with_another_call_does_not() -> None:
    class Absent:
        party, connection, bounds_waiting = "absent", None, True

        async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            await anyio.sleep_forever()
            return {}

        async def tell(self, method: str, params: Mapping[str, Any]) -> None: ...

        async def let_go(self) -> None: ...

    async def suspended(link: SupervisedConnection) -> None:
        with link.counts.call():
            async with link.host_requests.call(Absent(), Deadline(LIMITS), alone=True):
                await link.host_requests.answer("elicitation/create", {})

    house = House(max_sessions=3)
    working, waiting, both = (house.of(caller) for caller in names("greedy", 3))
    with working.counts.call(), both.counts.call():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(suspended, both)
            tasks.start_soon(suspended, waiting)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(UpstreamUnavailable, match="all 3 sessions"):
                house.of(replace(ANN, principal="greedy", client_name="one more", session="more"))
            house.of(EVE)
            tasks.cancel_scope.cancel()
    assert house.ended == [waiting]


async def test_a_look_at_the_lists_displaces_nobody() -> None:
    house = House(max_sessions=1)
    link = house.of(ANN)
    with pytest.raises(UpstreamUnavailable, match="max_sessions"):
        house.sessions.of(EVE, displacing=False)
    assert house.of(ANN) is link


async def test_sessions_that_nobody_uses_are_closed_and_others_are_not() -> None:
    house = House(session_idle=0.05)
    house.of(BOB)
    idle, busy, told = house.of(ANN), house.of(EVE), house.of(replace(ANN, session="ann-2"))
    with anyio.fail_after(5), busy.counts.call():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(told.subscriptions.add, "x://y")
            tasks.start_soon(house.sessions.expire)
            await house.has_ended.wait()
            tasks.cancel_scope.cancel()
    assert house.ended == [idle]
    assert house.of(EVE) is busy
    assert house.of(replace(ANN, session="ann-2")) is told
    assert house.of(ANN) is not idle


# -- eras


async def test_what_was_wanted_and_not_spoken_is_not_asked_for_again() -> None:
    eras = Eras()
    assert eras.for_host("modern") == "modern"
    eras.found("modern", "handshake")
    assert (eras.for_host("modern"), eras.for_host("handshake")) == ("handshake", "handshake")
    eras.found("handshake", "modern")  # another server has taken its place
    assert (eras.for_host("modern"), eras.for_host("handshake")) == ("modern", "modern")


async def test_an_era_that_was_not_tried_is_not_known_to_be_missing() -> None:
    eras = Eras()
    eras.found("handshake", "handshake")
    assert eras.for_host("modern") == "modern"


async def test_a_session_is_found_again_whatever_era_it_turned_out_to_speak() -> None:
    house = House()
    link = house.of(MODERN)
    house.opens(link, "handshake")
    assert house.of(MODERN) is link
    other = House()
    link = other.of(ANN)
    other.opens(link, "modern")
    assert other.of(ANN) is link


async def test_a_stateless_upstream_over_http_has_one_link_for_all() -> None:
    house = House(url="http://127.0.0.1:1/mcp")
    house.eras.spoken.add("modern")
    link = house.opens(house.of(MODERN), "modern")
    for caller in (replace(MODERN, client_name="x", capabilities=ASKABLE), replace(MODERN, principal="eve")):
        assert house.of(caller) is link


async def test_a_stateless_upstream_in_a_process_has_one_process_for_each_owner_whatever_it_declares() -> None:
    house = House()
    house.eras.spoken.add("modern")
    link = house.opens(house.of(MODERN), "modern")
    assert house.of(replace(MODERN, capabilities=ASKABLE)) is link
    assert house.of(replace(MODERN, client_name="x")) is not link


async def test_links_of_which_one_would_have_been_enough_are_not_lost_sight_of() -> None:
    house = House(url="http://127.0.0.1:1/mcp")
    hosts = [replace(MODERN, client_name=name) for name in "abc"]
    links = [house.of(host) for host in hosts]  # before it is known what the upstream speaks
    for link in links:
        house.opens(link, "modern")
    assert house.of(hosts[0]) is house.of(hosts[1]) is house.of(hosts[2])
    assert set(links) <= set(house.kept)


async def test_a_link_that_speaks_another_era_than_all_thought_is_not_lost_sight_of_nor_given_to_others() -> None:
    house = House(url="http://127.0.0.1:1/mcp")
    house.eras.spoken.add("modern")
    link = house.of(MODERN)
    house.opens(link, "handshake")  # another server has taken the place of the one that is remembered
    assert link in house.kept
    assert house.of(replace(MODERN, principal="eve")) is not link


# -- real processes


async def pid_of(upstream: Upstream, caller: Caller) -> int:
    result = await upstream.request("tools/call", {"name": "pid"}, RequestContext(caller), LIMITS)
    return result["structuredContent"]["pid"]


async def test_what_was_left_on_the_standing_connection_is_nobody_elses(connect: Any, stdio: Any) -> None:
    async with connect(stdio(session="host-session")) as upstream:
        first = await pid_of(upstream, ANN)
        upstream.left("ann-1")
        assert await pid_of(upstream, EVE) != first
        assert await pid_of(upstream, replace(ANN, session="ann-2")) != first


async def test_a_host_that_leaves_an_idle_one_and_one_that_makes_way_are_no_restarts(
    connect: Any, stdio: Any, changes: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "gateway.upstream")
    async with connect(stdio(session="host-session", max_sessions=1)) as upstream:
        await pid_of(upstream, ANN)
        upstream.left("ann-1")
        await pid_of(upstream, BOB)
        await pid_of(upstream, EVE)  # in place of the session of Bob
        assert upstream.counts.restarts == 0
        with pytest.raises(Exception, match="exited"):
            await upstream.request("tools/call", {"name": "die"}, RequestContext(EVE), LIMITS)
        await pid_of(upstream, EVE)
        assert upstream.counts.restarts == 1
    async with connect(stdio(session="host-session", session_idle=0.2)) as upstream:
        await pid_of(upstream, ANN)
        await changes.until(lambda: upstream.state is UpstreamState.STARTING)
        await pid_of(upstream, ANN)
        assert upstream.counts.restarts == 0
    async with connect(stdio(idle_stop=0.2)) as upstream:
        await changes.until(lambda: upstream.state is UpstreamState.SLEEPING)
        await pid_of(upstream, ANN)
        assert upstream.counts.restarts == 0
    begun = [line.message.partition("ready, ")[2] for line in caplog.records if ": ready, " in line.message]
    why = [line.partition(", started again: ")[2] for line in begun]
    assert why == [
        "",
        "the host that used it has left",
        "another host needed the session of the one that used it (max_sessions)",
        "the last one failed: exited with code 3: giving up: out of cheese",
        "",
        "its host has not called it for 0.2 s (session_idle)",
        "",
        "it was called while it slept",
    ]


async def test_making_room_does_not_stop_the_upstream(connect: Any, stdio: Any) -> None:
    async with connect(stdio(max_sessions=1)) as upstream:
        first = await pid_of(upstream, ANN)
        assert await pid_of(upstream, BOB) != first
        assert upstream.state is not UpstreamState.STOPPED
        upstream.left("bob-1")
        assert await pid_of(upstream, EVE) != first


async def test_what_an_idle_host_left_on_the_standing_connection_is_closed_too(
    connect: Any, stdio: Any, changes: Any
) -> None:
    async with connect(stdio(session_idle=0.2)) as upstream:
        first = await pid_of(upstream, ANN)
        await changes.until(lambda: upstream.state is UpstreamState.STARTING)
        assert await pid_of(upstream, ANN) != first


async def test_who_wakes_an_upstream_up_has_it_alone(connect: Any, stdio: Any, changes: Any) -> None:
    async with connect(stdio(idle_stop=0.2)) as upstream:
        await changes.until(lambda: upstream.state is UpstreamState.SLEEPING)
        first = await pid_of(upstream, ANN)
        assert await pid_of(upstream, EVE) != first


async def test_who_brings_a_dead_upstream_back_has_it_alone(connect: Any, stdio: Any, changes: Any) -> None:
    async with connect(stdio()) as upstream:
        with pytest.raises(Exception, match="exited"):
            await upstream.request("tools/call", {"name": "die"}, RequestContext(ANN), LIMITS)
        first = await pid_of(upstream, ANN)
        assert await pid_of(upstream, EVE) != first
        assert await pid_of(upstream, ANN) == first


async def test_a_disabled_upstream_says_so_to_every_host(connect: Any, stdio: Any) -> None:
    async with connect(stdio(enabled=False), ready=False) as upstream:
        for caller in (ANN, replace(ANN, capabilities=ASKABLE), MODERN):
            with pytest.raises(UpstreamUnavailable, match="disabled"):
                await pid_of(upstream, caller)


async def test_a_host_that_comes_before_the_upstream_is_run_is_served_when_it_is(stdio: Any, changes: Any) -> None:
    upstream = Upstream("raw", stdio(), on_change=changes)
    found: list[int] = []
    both = anyio.Event()

    async def call(caller: Caller) -> None:
        found.append(await pid_of(upstream, caller))
        if len(found) == 2:
            both.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, ANN)
            tasks.start_soon(call, replace(EVE, capabilities=ASKABLE))
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(upstream.run)
            await both.wait()
            upstream.stop()
    assert len(set(found)) == 2
    with pytest.raises(UpstreamUnavailable, match="stopped"):
        await call(replace(BOB, capabilities=ASKABLE))


async def test_all_calls_are_counted_whoevers_link_they_take(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        for caller in (ANN, EVE, ANN, BOB):
            await pid_of(upstream, caller)
        assert upstream.counts.total == 4
        assert upstream.counts.running == 0


async def test_everything_ends_at_once_though_several_found_the_same_stateless_upstream(
    serve: Any, changes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "STOP_GRACE", 600.0)  # it is not waited for to the end
    async with serve("modern") as origin:
        upstreams = Upstreams({"raw": UpstreamSettings(url=f"{origin}/mcp", transport="http")}, on_change=changes)
        with anyio.fail_after(60):
            async with upstreams:
                upstream = upstreams["raw"]

                async def call(name: str) -> None:
                    await pid_of(upstream, replace(MODERN, client_name=name))

                async with anyio.create_task_group() as tasks:
                    for name in "abc":
                        tasks.start_soon(call, name)


async def test_the_state_of_a_host_without_sessions_is_there_for_its_next_call(connect: Any, stdio: Any) -> None:
    async with connect(stdio()) as upstream:
        assert await pid_of(upstream, MODERN) == await pid_of(upstream, MODERN)
        assert await pid_of(upstream, replace(MODERN, principal="eve")) != await pid_of(upstream, MODERN)


async def test_an_upstream_of_both_eras_speaks_the_hosts(connect: Any) -> None:
    async with connect(bridge("--era", "both")) as upstream:

        async def era(caller: Caller) -> str:
            params = {"name": "echo_client", "arguments": {}}
            result = await upstream.request("tools/call", params, RequestContext(caller), LIMITS)
            return result["structuredContent"]["era"]

        assert [await era(caller) for caller in (ANN, MODERN, ANN, MODERN)] == ["handshake", "modern"] * 2


async def test_a_host_is_shown_as_what_it_is(connect: Any) -> None:
    able = replace(
        ANN, client_info={"name": "host", "version": "7"}, capabilities={"sampling": {}, "roots": {"listChanged": True}}
    )
    async with connect(bridge("--era", "both")) as upstream:
        for caller in (able, replace(able, revision="2026-07-28")):
            params = {"name": "echo_client", "arguments": {}}
            result = await upstream.request("tools/call", params, RequestContext(caller), LIMITS)
            seen = result["structuredContent"]
            assert seen["client"] == {"name": "host", "version": "7"}
            assert seen["capabilities"] == {"sampling": {}, "roots": {"listChanged": True}}

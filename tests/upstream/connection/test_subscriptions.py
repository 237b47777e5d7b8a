"""What is subscribed to, on a session that plays the upstream's part."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from gateway.errors import UpstreamLost, UpstreamRefused
from gateway.upstream.connection.negotiate_era import Opening
from gateway.upstream.connection.session import Session
from gateway.upstream.connection.subscriptions import Subscriptions

pytestmark = pytest.mark.anyio

FEATURES = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"listChanged": True, "subscribe": True}}
LISTS = {"toolsListChanged": True, "resourcesListChanged": True}
MISSED_LISTS = ["notifications/tools/list_changed", "notifications/resources/list_changed"]


class Upstream:
    """A session: `asked` is what it was asked, `streams` what it was listened to for; `heard` fires on either."""

    def __init__(self, era: str, capabilities: Mapping[str, Any] = FEATURES) -> None:
        self.opening = Opening(cast("Any", era), "", None, dict(capabilities))
        self.asked: list[tuple[str, str]] = []
        self.streams: list[dict[str, Any]] = []
        self.open = 0
        self.refuses: Callable[[Any], bool] = lambda what: False
        self.ending: Callable[[], Awaitable[None]] = anyio.sleep_forever
        self.missed: list[str] = []
        self._news = anyio.Event()

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method.removeprefix("resources/"), params["uri"]))
        self._tell()
        if self.refuses(params["uri"]):
            raise UpstreamRefused("x", -32602, "no such thing")
        return {}

    async def listen(self, notifications: Mapping[str, Any], stream: str) -> None:
        self.streams.append(dict(notifications))
        self._tell()
        if self.refuses(notifications):
            raise UpstreamRefused("x", -32602, "not that")
        self.open += 1
        try:
            await self.ending()
        finally:
            self.open -= 1

    def was_missed(self, method: str, params: Mapping[str, Any]) -> None:
        self.missed.append(params.get("uri", method))
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()

    async def quiet(self) -> None:
        await anyio.wait_all_tasks_blocked()


@pytest.fixture
def subscriptions() -> Subscriptions:
    return Subscriptions("x")


@asynccontextmanager
async def kept(subscriptions: Subscriptions, upstream: Upstream) -> AsyncIterator[Callable[[str], None]]:
    """While a connection lasts; what it yields adds a uri in the background."""
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(subscriptions.keep, cast("Session", upstream), upstream.was_missed)
            await upstream.quiet()

            def add(uri: str) -> None:
                tasks.start_soon(subscriptions.add, uri)

            yield add
            await upstream.quiet()
            tasks.cancel_scope.cancel()


# -- the handshake era


async def test_each_uri_is_subscribed_to_once_and_given_up_with_the_last_who_wanted_it(
    subscriptions: Subscriptions,
) -> None:
    upstream = Upstream("handshake")
    async with kept(subscriptions, upstream) as add:
        for uri in ("a", "a", "b"):
            add(uri)
        await upstream.quiet()
        assert upstream.asked == [("subscribe", "a"), ("subscribe", "b")]
        subscriptions.remove("a")
        await upstream.quiet()
        assert len(upstream.asked) == 2
        subscriptions.remove("a")
        await upstream.quiet()
        assert upstream.asked[2:] == [("unsubscribe", "a")]
        assert subscriptions.uris == {"b"}


async def test_adding_is_over_when_the_upstream_knows_it(subscriptions: Subscriptions) -> None:
    upstream = Upstream("handshake")
    async with kept(subscriptions, upstream):
        await subscriptions.add("a")
        assert upstream.asked == [("subscribe", "a")]


async def test_what_was_wanted_before_is_subscribed_to_anew_on_the_next_connection(
    subscriptions: Subscriptions,
) -> None:
    first, second = Upstream("handshake"), Upstream("handshake")
    async with kept(subscriptions, first) as add:
        add("a")
        add("b")
    subscriptions.remove("a")
    async with kept(subscriptions, second):
        pass
    assert second.asked == [("subscribe", "b")]
    assert first.asked == [("subscribe", "a"), ("subscribe", "b")]


async def test_one_that_is_refused_costs_the_others_nothing(subscriptions: Subscriptions) -> None:
    upstream = Upstream("handshake")
    upstream.refuses = lambda uri: uri == "a"
    async with kept(subscriptions, upstream):
        await subscriptions.add("a")
        await subscriptions.add("b")
        assert upstream.asked == [("subscribe", "a"), ("subscribe", "b")]


async def test_one_that_is_never_answered_costs_the_others_little(
    subscriptions: Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.connection.subscriptions.PATIENCE", 0.05)

    class Silent(Upstream):
        async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
            await super().ask(method, params)
            return await anyio.sleep_forever() if params["uri"] == "a" else {}  # pyright: ignore[reportReturnType]

    upstream = Silent("handshake")
    async with kept(subscriptions, upstream) as add:
        add("a")
        add("b")
        await upstream.until(lambda: ("subscribe", "b") in upstream.asked)


@pytest.mark.parametrize("resources", [None, {}, {"subscribe": False}, {"subscribe": "yes"}])
async def test_an_upstream_that_knows_no_subscriptions_is_not_asked_and_nobody_waits(
    subscriptions: Subscriptions, resources: Any
) -> None:
    upstream = Upstream("handshake", {"resources": resources})
    async with kept(subscriptions, upstream):
        await subscriptions.add("a")
    assert upstream.asked == []


async def test_removing_what_nobody_wanted_changes_nothing(subscriptions: Subscriptions) -> None:
    subscriptions.remove("a")
    subscriptions.remove("a")
    upstream = Upstream("handshake")
    async with kept(subscriptions, upstream):
        await subscriptions.add("a")
        assert subscriptions.uris == {"a"}


# -- the stateless era


async def test_one_stream_carries_the_lists_and_all_uris(subscriptions: Subscriptions) -> None:
    upstream = Upstream("modern")
    async with kept(subscriptions, upstream) as add:
        add("b")
        add("a")
        await upstream.quiet()
        assert upstream.streams[0] == LISTS
        assert upstream.streams[-1] == LISTS | {"resourceSubscriptions": ["a", "b"]}
        subscriptions.remove("a")
        await upstream.quiet()
        assert upstream.streams[-1] == LISTS | {"resourceSubscriptions": ["b"]}
        subscriptions.remove("b")
        await upstream.quiet()
        assert upstream.streams[-1] == LISTS
        assert upstream.open == 1


async def test_one_more_who_wants_the_same_leaves_no_stream_behind(subscriptions: Subscriptions) -> None:
    upstream = Upstream("modern")
    async with kept(subscriptions, upstream) as add:
        for _ in range(5):
            add("a")
        await upstream.quiet()
        assert upstream.open == 1
    assert upstream.open == 0


async def test_an_upstream_that_announces_nothing_is_not_listened_to_until_somebody_subscribes(
    subscriptions: Subscriptions,
) -> None:
    upstream = Upstream("modern", {"tools": {}, "resources": {"subscribe": True}})
    async with kept(subscriptions, upstream) as add:
        assert upstream.streams == []
        add("a")
        await upstream.quiet()
        assert upstream.streams == [{"resourceSubscriptions": ["a"]}]
        subscriptions.remove("a")
        await upstream.quiet()
        assert (len(upstream.streams), upstream.open) == (1, 0)


@pytest.mark.parametrize("failure", [None, UpstreamLost("x", "the stream ended")])
async def test_after_a_broken_stream_all_that_may_have_changed_is_looked_at(
    subscriptions: Subscriptions, failure: Exception | None
) -> None:
    upstream = Upstream("modern")
    break_it = anyio.Event()

    async def breaking() -> None:
        if len(upstream.streams) > 2:
            await anyio.sleep_forever()
        await break_it.wait()
        if failure is not None:
            raise failure

    upstream.ending = breaking
    async with kept(subscriptions, upstream) as add:
        add("a")
        await upstream.quiet()
        assert (len(upstream.streams), upstream.missed) == (2, [])
        break_it.set()
        await upstream.until(lambda: len(upstream.streams) == 3)
        assert upstream.streams[2] == upstream.streams[1]
        assert upstream.missed == []  # it is looked at when the new stream is there, so that nothing falls in between
        subscriptions.acknowledged({"notifications": upstream.streams[2]})
        assert upstream.missed == [*MISSED_LISTS, "a"]
        subscriptions.acknowledged({"notifications": upstream.streams[2]})
        assert upstream.missed[3:] == MISSED_LISTS


async def test_a_subscription_that_is_refused_is_not_asked_for_again_until_it_is_another(
    subscriptions: Subscriptions,
) -> None:
    upstream = Upstream("modern", {"resources": {"subscribe": True}})
    upstream.refuses = lambda wanted: "a" in wanted["resourceSubscriptions"]
    async with kept(subscriptions, upstream) as add:
        await subscriptions.add("a")
        await upstream.quiet()
        assert len(upstream.streams) == 1
        add("b")
        await upstream.quiet()
        subscriptions.remove("a")
        await upstream.quiet()
        assert [one["resourceSubscriptions"] for one in upstream.streams] == [["a"], ["a", "b"], ["b"]]
        assert upstream.open == 1


async def test_uris_that_are_refused_do_not_cost_the_news_of_lists(subscriptions: Subscriptions) -> None:
    upstream = Upstream("modern")
    upstream.refuses = lambda wanted: "resourceSubscriptions" in wanted
    async with kept(subscriptions, upstream) as add:
        add("a")
        await upstream.quiet()
        assert upstream.streams == [LISTS, LISTS | {"resourceSubscriptions": ["a"]}, LISTS]
        assert upstream.open == 1


async def test_one_that_refuses_every_subscription_is_left_alone(subscriptions: Subscriptions) -> None:
    upstream = Upstream("modern")
    upstream.refuses = lambda wanted: True
    async with kept(subscriptions, upstream):
        await subscriptions.add("a")
        await upstream.quiet()
        assert len(upstream.streams) == 2


@pytest.mark.parametrize("told", [None, {}, {"notifications": []}, {"notifications": {"resourceSubscriptions": 3}}])
async def test_whatever_an_acknowledgement_says_nobody_waits_after_it(subscriptions: Subscriptions, told: Any) -> None:
    upstream = Upstream("modern")
    async with kept(subscriptions, upstream) as add:
        add("a")
        await upstream.quiet()
        subscriptions.acknowledged(told or {})
        with anyio.fail_after(30):
            await subscriptions.add("a")


async def test_the_answer_to_a_stream_that_has_been_replaced_says_nothing_of_the_next_one(
    subscriptions: Subscriptions,
) -> None:
    upstream = Upstream("modern")
    async with kept(subscriptions, upstream) as add:
        add("a")
        await upstream.quiet()
        late = {
            "notifications": {"toolsListChanged": True},
            "_meta": {"io.modelcontextprotocol/subscriptionId": "listen-1"},
        }
        subscriptions.acknowledged(late)
        assert (upstream.missed, subscriptions._settled) == ([], frozenset())
        late["_meta"]["io.modelcontextprotocol/subscriptionId"] = f"listen-{len(upstream.streams)}"
        subscriptions.acknowledged(late)
        assert upstream.missed
        assert subscriptions._settled == {"a"}


def answer(upstream: Upstream, number: int) -> dict[str, Any]:
    """The acknowledgement of a stream."""
    meta = {"io.modelcontextprotocol/subscriptionId": f"listen-{number}"}
    return {"notifications": upstream.streams[number - 1], "_meta": meta}


async def test_whoever_subscribes_waits_for_a_stream_that_was_asked_for_it(subscriptions: Subscriptions) -> None:
    upstream, told = Upstream("modern"), list[str]()

    async def add(uri: str) -> None:
        await subscriptions.add(uri)
        told.append(uri)

    async with kept(subscriptions, upstream), anyio.create_task_group() as tasks:
        tasks.start_soon(add, "a")
        await upstream.quiet()
        subscriptions.want("b")
        # The upstream's answer comes in the moment in which the next stream is not asked for yet.
        subscriptions.acknowledged(answer(upstream, 2))
        tasks.start_soon(subscriptions.confirmed, "b")
        await upstream.quiet()
        assert told == ["a"]
        assert subscriptions._settled == {"a"}
        subscriptions.acknowledged(answer(upstream, 3))
        assert subscriptions._settled == {"a", "b"}


async def test_what_a_stream_was_for_is_heard_until_the_next_one_is_there(subscriptions: Subscriptions) -> None:
    upstream = Upstream("modern")
    async with kept(subscriptions, upstream) as add:
        add("a")
        await upstream.quiet()
        subscriptions.acknowledged(answer(upstream, 2))
        await upstream.quiet()
        for uri in ("b", "c"):
            add(uri)
            await upstream.quiet()
        assert upstream.streams[-1] == LISTS | {"resourceSubscriptions": ["a", "b", "c"]}
        assert upstream.open == 2  # the one for a, and the last; nobody relied on the one between
        subscriptions.acknowledged(answer(upstream, 4))
        await upstream.quiet()
        assert upstream.open == 1


async def test_one_that_breaks_while_it_is_replaced_is_made_up_for(subscriptions: Subscriptions) -> None:
    upstream, break_it = Upstream("modern"), anyio.Event()
    upstream.ending = lambda: break_it.wait() if len(upstream.streams) == 2 else anyio.sleep_forever()
    async with kept(subscriptions, upstream) as add:
        add("a")
        await upstream.quiet()
        subscriptions.acknowledged(answer(upstream, 2))
        add("b")
        await upstream.quiet()
        break_it.set()
        await upstream.quiet()
        upstream.missed.clear()
        subscriptions.acknowledged(answer(upstream, 3))
        assert upstream.missed == [*MISSED_LISTS, "a"]
        assert upstream.open == 1


async def test_another_subscriber_to_the_same_opens_no_other_stream(subscriptions: Subscriptions) -> None:
    upstream = Upstream("modern")
    async with kept(subscriptions, upstream) as add:
        for _ in range(3):
            add("a")
            await upstream.quiet()
        assert len(upstream.streams) == 2


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_what_is_confirmed_later_than_its_host_waited_may_have_changed_meanwhile(
    subscriptions: Subscriptions, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.connection.subscriptions.PATIENCE", 0.0)
    upstream = Upstream(era)
    await subscriptions.add("a")  # as while there is no connection yet
    async with kept(subscriptions, upstream):
        if era == "modern":
            assert upstream.missed == []
            subscriptions.acknowledged(answer(upstream, 1))
        assert upstream.missed[-1] == "a"
        upstream.missed.clear()
        subscriptions.want("b")
        await upstream.quiet()
        assert "a" not in upstream.missed

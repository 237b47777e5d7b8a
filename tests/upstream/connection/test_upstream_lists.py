"""The lists of an upstream: all four, page after page, with what each says about itself, and kept fresh."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.config.upstream_settings import UpstreamSettings
from gateway.errors import UpstreamGarbage, UpstreamRefused
from gateway.upstream import Upstreams
from gateway.upstream.catalogues import Catalogues, RememberedLists
from gateway.upstream.connection.negotiate_era import Opening
from gateway.upstream.connection.upstream_lists import Lists
from gateway.upstream.transports.failures import Subject
from gateway.upstream.transports.redaction import Secrets

pytestmark = pytest.mark.anyio

EVERYTHING = {"tools": {}, "resources": {}, "prompts": {}}
SETTINGS = UpstreamSettings(command="x")


class FakeSession:
    """A session that answers lists from `pages`, by method; an exception there is raised."""

    def __init__(self, capabilities: dict[str, Any], **pages: Any) -> None:
        self.opening = Opening("modern", "2026-07-28", capabilities=capabilities)
        self.pages = pages
        self.asked: list[str] = []

    async def list_tools(self, pages: list[Any], allowance: Any) -> tuple[Any, ...]:
        return await self.list_all("tools/list", "tools", pages, allowance)

    async def list_all(self, method: str, key: str, pages: list[Any], allowance: Any) -> tuple[Any, ...]:
        self.asked.append(method)
        answer = self.pages.get(key, [{key: []}])
        if isinstance(answer, Exception):
            raise answer
        pages.extend(answer)
        return tuple(item for page in answer for item in page[key])


def speaking(capabilities: dict[str, Any], **pages: Any) -> Any:
    return FakeSession(capabilities, **pages)


@pytest.fixture
def announced() -> list[str]:
    return []


@pytest.fixture
def lists(announced: list[str]) -> Lists:
    return Lists(Subject("raw", SETTINGS, Secrets(SETTINGS)), lambda kind, _: announced.append(kind))


async def test_every_list_is_fetched_with_its_hint_and_announced(lists: Lists, announced: list[str]):
    prompts = [{"prompts": [{"name": "a"}], "ttlMs": 9, "_meta": {"x": 1}}, {"prompts": [{"name": "b"}], "ttlMs": 5}]
    session = speaking(EVERYTHING, tools=[{"tools": [{"name": "t"}], "ttlMs": 3}], prompts=prompts)
    await lists.fetch(session)
    assert lists.prompts == ({"name": "a"}, {"name": "b"})
    assert lists.hints["prompts"] == {"ttlMs": 5, "_meta": {"x": 1}}
    assert lists.hints["tools"]["ttlMs"] == 3
    assert announced == ["tools", "prompts"]
    await lists.fetch(session)
    assert announced == ["tools", "prompts"]
    session.pages["prompts"] = [{**prompts[0], "_meta": {"x": 2}}, prompts[1]]
    await lists.fetch(session)
    assert announced == ["tools", "prompts", "prompts"]


async def test_what_is_not_declared_is_not_asked_for_and_what_was_there_goes(lists: Lists, announced: list[str]):
    await lists.fetch(speaking(EVERYTHING, prompts=[{"prompts": [{"name": "a"}]}]))
    bare = speaking({"tools": {}})
    await lists.fetch(bare)
    assert bare.asked == ["tools/list"]
    assert lists.prompts == ()
    assert announced == ["prompts", "prompts"]


@pytest.mark.parametrize("error", [UpstreamRefused("raw", -32603, "not today"), UpstreamGarbage("raw", "what?")])
async def test_a_list_that_cannot_be_had_keeps_what_was_known_and_costs_no_other(lists: Lists, error: Exception):
    await lists.fetch(speaking(EVERYTHING, prompts=[{"prompts": [{"name": "a"}], "ttlMs": 4}]))
    await lists.fetch(speaking(EVERYTHING, resources=error, prompts=error))
    assert lists.prompts == ({"name": "a"},)
    assert lists.hints["prompts"]["ttlMs"] == 4
    missing = UpstreamRefused("raw", -32601, "Method not found")
    await lists.fetch(speaking(EVERYTHING, prompts=missing))
    assert lists.prompts == ()


async def test_lists_are_listed_anew_when_they_are_said_to_have_changed(lists: Lists, announced: list[str]):
    session = speaking(EVERYTHING)
    again = anyio.Event()

    async def listed() -> None:
        again.set()

    await lists.fetch(session)
    session.asked.clear()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lists.keep, session, listed)
            session.pages["prompts"] = [{"prompts": [{"name": "new"}]}]
            lists.notified("notifications/strange/list_changed")
            lists.notified("prompts")
            lists.notified("notifications/prompts/list_changed")
            await again.wait()
            tasks.cancel_scope.cancel()
    assert session.asked == ["prompts/list"]
    assert announced == ["prompts"]


async def test_what_an_upstream_announces_goes_on_though_nothing_changed_and_once(lists: Lists, announced: list[str]):
    session = speaking(EVERYTHING)
    rounds: list[list[str]] = []
    both = anyio.Event()

    async def listed() -> None:
        rounds.append(announced.copy())
        if len(rounds) == 2:
            both.set()
        lists.notified("notifications/tools/list_changed", was_said=False)

    await lists.fetch(session)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lists.keep, session, listed)
            session.pages["prompts"] = [{"prompts": [{"name": "new"}]}]
            lists.notified("notifications/prompts/list_changed")
            lists.notified("notifications/resources/list_changed")
            lists.notified("notifications/resources/list_changed")
            await both.wait()
            tasks.cancel_scope.cancel()
    assert rounds == [["resources", "prompts"]] * 2  # what may have been missed is told only where it is another


@pytest.mark.parametrize(("items", "changes"), [(1, True), (1, False), (8_000, True)])
async def test_an_upstream_that_announces_changes_without_end_is_asked_less_and_less_often(
    lists: Lists, monkeypatch: pytest.MonkeyPatch, items: int, changes: bool
):
    """Each change of a list is work for all hosts that are offered it, and more of it if the list is long."""
    pauses: list[float] = []
    enough = anyio.Event()

    async def paused(seconds: float) -> None:
        pauses.append(seconds)
        session.pages["tools"] = [{"tools": [{"name": f"t{len(pauses) if changes else 0}"}] * items}]
        if len(pauses) == 12:
            enough.set()
            await anyio.sleep_forever()
        lists.notified("notifications/tools/list_changed")

    async def listed() -> None:
        pass

    session = speaking(EVERYTHING)
    await lists.fetch(session)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            lists.notified("notifications/tools/list_changed")
            monkeypatch.setattr("gateway.upstream.connection.upstream_lists.sleep", paused)
            tasks.start_soon(lists.keep, session, listed)
            await enough.wait()
            tasks.cancel_scope.cancel()
    assert pauses[0] < 0.5
    assert pauses == sorted(pauses)
    assert pauses[-1] == max(5, items / 1_000)


async def test_an_upstream_that_announces_now_and_then_is_asked_at_once(lists: Lists, monkeypatch: pytest.MonkeyPatch):
    pauses: list[float] = []
    again = anyio.Event()

    async def paused(seconds: float) -> None:
        nonlocal again
        pauses.append(seconds)
        again.set()

    async def listed() -> None:
        pass

    session = speaking(EVERYTHING)
    await lists.fetch(session)
    monkeypatch.setattr("gateway.upstream.connection.upstream_lists.sleep", paused)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lists.keep, session, listed)
            for number in range(5):
                again = anyio.Event()
                session.pages["tools"] = [{"tools": [{"name": f"t{number}"}]}]
                lists.notified("notifications/tools/list_changed")
                await again.wait()
                await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert pauses == [0.1] * 5


async def test_an_announcement_goes_on_though_the_list_cannot_be_had(lists: Lists, announced: list[str]):
    again = anyio.Event()

    async def listed() -> None:
        again.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lists.keep, speaking(EVERYTHING, tools=UpstreamRefused("raw", -1, "not now")), listed)
            lists.notified("notifications/tools/list_changed")
            await again.wait()
            tasks.cancel_scope.cancel()
    assert announced == ["tools"]


def test_lists_are_taken_over_and_given_on_whole(lists: Lists, announced: list[str]):
    known = RememberedLists(
        tools=({"name": "t"},), prompts=({"name": "p"},), hints={"tools": {"ttlMs": 1, "_meta": {}}}
    )
    lists.take(known)
    assert RememberedLists(**lists.known()) == known
    assert announced == []


@pytest.mark.parametrize("flags", [(), ("modern",)])
async def test_a_real_servers_prompts_are_listed_and_kept_on_disk(
    stdio: Any, tmp_path: Path, changes: Any, flags: tuple[str, ...]
):
    catalogues, settings = Catalogues(tmp_path), stdio("prompts", *flags)
    with anyio.fail_after(30):
        async with Upstreams({"raw": settings}, on_change=changes, catalogues=catalogues) as upstreams:
            assert await upstreams["raw"].ready(20)
            assert [prompt["name"] for prompt in upstreams["raw"].prompts()] == ["review", "greet"]
            assert ("raw", "prompts") in changes.all
            while (kept := catalogues.recall(settings)) is None:
                await anyio.lowlevel.checkpoint()
    assert kept.prompts[0]["arguments"] == [{"name": "code", "title": "The code", "required": True, "later": 1}]
    assert kept.hints["prompts"] == {"ttlMs": 5_000, "_meta": {"raw/page": 2, "raw/first": True}}

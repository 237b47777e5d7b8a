"""Sessions that are left to the other replicas one by one, and what is never left."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import Scope

from gateway.serving.cluster.leave_sessions import LeaveSessions
from gateway.serving.cluster.session_index import SessionIndex, SessionRecord
from gateway.serving.databases.local_records import LocalRecords

pytestmark = pytest.mark.anyio
ONE = "0123456789ab.one"


class Sessions:
    """Open sessions, some of which are answering."""

    def __init__(self, *names: str) -> None:
        self.open = list(names)
        self.answering: set[str] = set()

    def has(self, session: str) -> bool:
        return session in self.open

    def open_sessions(self) -> Sequence[str]:
        return tuple(self.open)

    def is_answering(self, session: str) -> bool:
        return session in self.answering

    def undelivered(self, session: str) -> Sequence[Mapping[str, Any]]:
        return [{"id": "1", "stream": "s", "message": None}]

    async def end(self, session: str) -> None:
        self.open.remove(session)

    async def adopt(
        self, session: str, scope: Scope, requests: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
    ) -> bool:
        raise AssertionError("nothing is taken over here")


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[LocalRecords]:
    made = LocalRecords(tmp_path / "records")
    yield made
    await made.close()


async def opened(records: LocalRecords, own: str, *sessions: str) -> SessionIndex:
    index = SessionIndex(records, own, 60.0)
    for one in sessions:
        index.add(SessionRecord(one, None, "alice", None, {}))
        await index.write_now(one)
    return index


async def test_an_idle_session_is_left_with_the_answers_that_its_host_lacks(records: LocalRecords) -> None:
    sessions, index = Sessions(ONE), await opened(records, "first", ONE)
    assert await LeaveSessions(sessions, index, lambda: True).leave(ONE)
    assert not sessions.has(ONE)
    found = await index.find(ONE)
    assert found is not None
    assert found.replica is None
    other = SessionIndex(records, "second", 60.0)
    assert await other.claim(found)
    assert await other.answers(ONE) == [{"id": "1", "stream": "s", "message": None}]


async def test_what_runs_or_is_kept_by_an_upstream_stays(records: LocalRecords) -> None:
    sessions, index = Sessions(ONE), await opened(records, "first", ONE)
    leave = LeaveSessions(sessions, index, lambda: True)
    with leave.used(ONE), leave.used(ONE):
        assert not await leave.leave(ONE)
    sessions.answering.add(ONE)
    assert not await leave.leave(ONE)
    sessions.answering.clear()
    record = index.of(ONE)
    assert record is not None
    record.upstreams.append("browser")
    assert not await leave.leave(ONE)
    record.upstreams.clear()
    assert not await LeaveSessions(sessions, index, lambda: False).leave(ONE), "there is nobody else"
    assert await leave.leave(ONE)


async def test_requests_meanwhile_wait_until_a_session_is_left(records: LocalRecords) -> None:
    sessions, index = Sessions(ONE), await opened(records, "first", ONE)
    leave = LeaveSessions(sessions, index, lambda: True)
    found: list[bool] = []

    async def ask() -> None:
        found.append(await leave.leave(ONE))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
    assert found == [True] * 5


async def test_a_session_that_another_has_taken_over_is_left_to_it(records: LocalRecords) -> None:
    index, other = await opened(records, "first", ONE), SessionIndex(records, "second", 60.0)
    found = await other.find(ONE)
    assert found is not None
    assert await other.claim(found)
    await index.hand_over({})
    now = await other.find(ONE)
    assert now is not None
    assert now.replica == "second"


async def test_nothing_that_a_replica_writes_later_undoes_that_another_has_taken_over(records: LocalRecords) -> None:
    index, other = await opened(records, "first", ONE), SessionIndex(records, "second", 60.0)
    found = await other.find(ONE)
    assert found is not None
    taken = await other.claim(found)
    assert taken is not None
    other.add(taken)
    index.rewrite()
    await index.flush()
    assert index.is_elsewhere(ONE)
    assert index.of(ONE) is None
    sessions = Sessions(ONE)
    assert await LeaveSessions(sessions, index, lambda: False).leave(ONE), "it is ended here, also if this one stays"
    index.remove(ONE)
    assert not index.is_elsewhere(ONE)
    await index.write_now(ONE)
    now = await other.find(ONE)
    assert now is not None
    assert (now.replica, now.taken) == ("second", 1)


async def test_a_session_that_was_left_is_not_forgotten_by_what_was_due(records: LocalRecords) -> None:
    index = await opened(records, "first", ONE)
    index.changed(ONE)
    await index.leave(ONE, ())
    await index.write_now(ONE)  # as a batch that had begun before
    found = await index.find(ONE)
    assert found is not None
    assert found.replica is None

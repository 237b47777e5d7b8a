"""What one replica does with ids of sessions that it does not have."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Scope

from gateway.errors import StateUnavailable
from gateway.serving.cluster.forward_request import Forwarder, forwarding_client
from gateway.serving.cluster.hop_mark import HopMarks
from gateway.serving.cluster.keys import TAG
from gateway.serving.cluster.leave_sessions import LeaveSessions
from gateway.serving.cluster.replicas import Replica, Replicas, new_id
from gateway.serving.cluster.session_forwarding import SessionForwarding
from gateway.serving.cluster.session_index import SessionIndex, SessionRecord
from gateway.serving.databases.availability import Availability
from gateway.serving.databases.local_records import LocalRecords
from gateway.serving.databases.redis_connection import RedisConnection

pytestmark = pytest.mark.anyio


class NoSessions:
    """A replica that has no sessions, and cannot open one."""

    def has(self, session: str) -> bool:
        return False

    async def adopt(
        self, session: str, scope: Scope, requests: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
    ) -> bool:
        return False

    def open_sessions(self) -> Sequence[str]:
        return []

    def is_answering(self, session: str) -> bool:
        return False

    def undelivered(self, session: str) -> Sequence[Mapping[str, Any]]:
        return []

    async def end(self, session: str) -> None:
        raise AssertionError("there are none")


async def test_nothing_is_kept_of_ids_that_are_made_up_while_redis_is_away() -> None:
    """Hosts choose the ids, so whatever stays of one is memory that a host can fill."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    redis = RedisConnection(f"redis://127.0.0.1:{port}/0", TAG, "cluster.url", Availability("Redis", "it is away"))
    own = new_id()
    replicas = Replicas(redis, Replica(own, ""), 10.0)

    def adopted() -> None:
        raise AssertionError("nobody knows the session")

    async def no_home(_: Scope) -> Replica | None:
        return None

    async with forwarding_client() as client:
        sessions, index = NoSessions(), SessionIndex(redis, own, 60.0)
        forwarding = SessionForwarding(
            PlainTextResponse("here"),
            sessions,
            replicas,
            index,
            Forwarder(client, HopMarks(own, lambda: b"key")),
            adopted,
            no_home,
            LeaveSessions(sessions, index, lambda: False),
        )
        transport = httpx2.ASGITransport(forwarding)
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as host:
            for number in range(20):
                headers = {"Mcp-Session-Id": f"{new_id()}.{number}"}
                assert (await host.post("/mcp", json={}, headers=headers)).status_code == 503
        await redis.close()
    assert not forwarding._adopting  # pyright: ignore[reportPrivateUsage]


class OpensTheSecondTime(NoSessions):
    """A replica that loses Redis while it opens a session, the first time."""

    def __init__(self) -> None:
        self.tries = 0
        self.ended: list[str] = []

    def has(self, session: str) -> bool:
        return self.tries > 1

    async def adopt(
        self, session: str, scope: Scope, requests: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]]
    ) -> bool:
        self.tries += 1
        if self.tries == 1:
            raise StateUnavailable("it is away", remedy="try again")
        assert answers == [{"id": "1"}], "which are kept until the session is open"
        return True

    async def end(self, session: str) -> None:
        self.ended.append(session)


async def test_a_session_that_could_not_be_opened_is_opened_by_the_next_request(tmp_path: Path) -> None:
    records = LocalRecords(tmp_path / "records")
    own, gone = new_id(), SessionIndex(records, "gone", 60.0)
    session = f"{new_id()}.1"
    gone.add(SessionRecord(session, None, "local", None, {}))
    await gone.leave(session, [{"id": "1"}])
    replicas, index = Replicas(records, Replica(own, ""), 10.0), SessionIndex(records, own, 60.0)
    sessions = OpensTheSecondTime()
    adopted: list[str] = []

    async def no_home(_: Scope) -> Replica | None:
        return None

    async with forwarding_client() as client:
        forwarding = SessionForwarding(
            PlainTextResponse("here"),
            sessions,
            replicas,
            index,
            Forwarder(client, HopMarks(own, lambda: b"key")),
            lambda: adopted.append(session),
            no_home,
            LeaveSessions(sessions, index, lambda: False),
        )
        transport = httpx2.ASGITransport(forwarding)
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as host:
            answers = [await host.post("/mcp", json={}, headers={"Mcp-Session-Id": session}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [503, 200]
    assert sessions.ended == [session]
    assert adopted == [session]
    assert len(index) == 1
    assert await index.answers(session) == []
    await records.close()

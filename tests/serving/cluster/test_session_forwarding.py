"""What one replica does with ids of sessions that it does not have."""

import socket
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Scope

from gateway.serving.cluster.forward_request import Forwarder, forwarding_client
from gateway.serving.cluster.hop_mark import HopMarks
from gateway.serving.cluster.keys import TAG
from gateway.serving.cluster.leave_sessions import LeaveSessions
from gateway.serving.cluster.replicas import Replica, Replicas, new_id
from gateway.serving.cluster.session_forwarding import SessionForwarding
from gateway.serving.cluster.session_index import SessionIndex
from gateway.serving.databases.availability import Availability
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

"""Records that no gateway of this version has written: each counts as missing, and no request fails because of one."""

import json
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import httpx2
import pytest

from gateway.config.schema import Settings
from gateway.routing.long_calls.kept_outcome import read_outcome
from gateway.serving.cluster.cluster import Cluster
from gateway.serving.cluster.keys import (
    REPLICAS,
    answers_key,
    outcome_key,
    owner_key,
    replica_key,
    session_key,
    task_key,
)
from gateway.serving.cluster.local_use import LocalUse
from gateway.serving.cluster.replicas import Replica, new_id
from gateway.serving.databases.local_records import LocalRecords

pytestmark = pytest.mark.anyio

FOREIGN = (
    "",
    "not JSON",
    "\x00",
    "null",
    "1e999",
    "[" * 100_000,
    "[]",
    '"text"',
    "{}",
    '{"replica": 3, "upstream": []}',
    '{"id": {}, "address": 7, "principal": []}',
    '{"error": {"kind": "refused", "code": "x"}}',
)


@pytest.fixture
async def records(tmp_path: Path) -> AsyncGenerator[LocalRecords]:
    made = LocalRecords(tmp_path / "records")
    yield made
    await made.close()


@pytest.mark.parametrize("text", FOREIGN)
async def test_what_no_gateway_has_written_counts_as_missing(records: LocalRecords, text: str) -> None:
    name = new_id()
    async with records.reached() as redis:
        for key in (
            *(task_key("client", "task"), outcome_key("client", "task"), session_key("s"), answers_key("s")),
            *(owner_key("upstream", "owner"), replica_key("other")),
        ):
            await redis.set(key, text)
        await redis.sadd(REPLICAS, "other")
    async with httpx2.AsyncClient() as client:
        one = Cluster(Settings(), client, records, Replica(name, ""), partial(LocalUse, records, name))
        one.replicas.open_at("http://one")
        await one.replicas.look()
        assert not one.replicas.others()
        assert not await one.route_of_task("client", "task")
        found = await one.call_elsewhere("client", "task")
        assert found is None or (not found.is_running and read_outcome(found.outcome or {}) is not None)
        assert await one.index.find("s") is None
        assert await one.index.answers("s") == []
        assert not records.availability.is_away, "the records themselves can be used"


async def test_what_this_replica_has_it_knows_whatever_is_written_in_its_place(records: LocalRecords) -> None:
    name = new_id()
    async with httpx2.AsyncClient() as client:
        one = Cluster(Settings(), client, records, Replica(name, ""), partial(LocalUse, records, name))
        one.task_given("client", "task", {"upstream": "up", "tool": "t"})
        await one._soon.rest()
        async with records.reached() as redis:
            await redis.set(task_key("client", "task"), json.dumps([1]))
        assert await one.route_of_task("client", "task") == {"upstream": "up", "tool": "t"}

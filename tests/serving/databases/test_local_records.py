"""Records in a file that several processes share, with the commands of Redis."""

import multiprocessing
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.errors import StateUnavailable
from gateway.routing.replica_port import SharedLimit
from gateway.serving.cluster.local_use import LocalUse
from gateway.serving.databases.local_records import LocalRecords

pytestmark = pytest.mark.anyio


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def records(tmp_path: Path, clock: Clock) -> Generator[tuple[LocalRecords, LocalRecords]]:
    """Two connections to one file, as two workers have them."""
    both = LocalRecords(tmp_path / "records", clock), LocalRecords(tmp_path / "records", clock)
    yield both
    for one in both:
        one.connection.close()


async def test_what_one_writes_the_other_reads_until_it_expires(
    records: tuple[LocalRecords, LocalRecords], clock: Clock
) -> None:
    async with records[0].reached() as first, records[1].reached() as second:
        assert await first.set("a", "1", ex=10)
        assert await first.set("b", "2", px=10_000)
        assert await first.set("c", "3")
        assert await second.mget(["a", "b", "c", "d"]) == ["1", "2", "3", None]
        assert await second.exists("a") == 1
        assert not await second.set("a", "other", nx=True)
        clock.now += 9
        assert await second.expire("a", 10) == 1
        clock.now += 2
        assert await first.mget(["a", "b", "c"]) == ["1", None, "3"]
        assert await second.set("b", "again", nx=True), "what has expired is free"
        assert await first.delete("a", "b", "nothing") == 2
        clock.now += 100
        assert await second.expire("a", 10) == 0


async def test_a_pipeline_is_carried_out_as_a_whole(records: tuple[LocalRecords, LocalRecords]) -> None:
    async with records[0].reached() as first, first.pipeline(transaction=True) as pipe:
        pipe.exists("a")
        pipe.set("a", "1")
        pipe.sadd("all", "x", "y")
        pipe.srem("all", "y")
        pipe.smembers("all")
        async with records[1].reached() as second:
            assert await second.get("a") is None
        assert await pipe.execute() == [0, True, 2, 1, {"x"}]


def _claim(path: str, results: Any) -> None:
    records = LocalRecords(Path(path))

    async def claim(pipe: Any) -> bool:
        count = int(await pipe.get("count") or 0)
        pipe.multi()
        pipe.set("count", str(count + 1))
        return True

    async def run() -> None:
        for _ in range(200):
            await records.decided(claim, "count")

    anyio.run(run)
    results.put("done")


def test_decisions_of_several_processes_come_one_after_another(tmp_path: Path) -> None:
    spawned = multiprocessing.get_context("spawn")
    results = spawned.Queue()
    processes = [spawned.Process(target=_claim, args=(str(tmp_path / "records"), results)) for _ in range(3)]
    for one in processes:
        one.start()
    for one in processes:
        results.get(timeout=60)
        one.join(60)
    records = LocalRecords(tmp_path / "records")
    assert records.connection.execute("SELECT value FROM records").fetchall() == [("600",)]
    records.connection.close()


async def test_a_file_that_cannot_be_used_is_said_once_and_when_it_can_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    records = LocalRecords(tmp_path / "records")
    records.connection.execute("ALTER TABLE records RENAME TO away")
    for _ in range(2):
        with pytest.raises(StateUnavailable):
            async with records.reached() as commands:
                await commands.get("a")
    assert caplog.text.count("cannot be used") == 1
    records.connection.execute("ALTER TABLE away RENAME TO records")
    async with records.reached() as commands:
        assert await commands.get("a") is None
    assert "can be used again" in caplog.text
    records.connection.close()
    with pytest.raises(OSError, match="cannot be used"):
        LocalRecords(tmp_path)


async def test_limits_are_counted_for_all_and_what_ended_with_a_worker_is_not(
    records: tuple[LocalRecords, LocalRecords], clock: Clock
) -> None:
    first = LocalUse(records[0], "one", lambda: ["two"], clock)
    second = LocalUse(records[1], "two", lambda: ["one"], clock)
    who = ("principal", "alice")
    minute, at_once = SharedLimit("calls_per_minute", 2, who), SharedLimit("calls_at_once", 1, who)
    day, size = SharedLimit("calls_per_day", 4, who), SharedLimit("bytes_per_day", 100, who)
    assert await first.begin([minute, day]) is None
    clock.now += 20
    assert await second.begin([minute, day]) is None
    exceeded = await first.begin([minute, day])
    assert exceeded is not None
    assert (exceeded.limit, exceeded.seconds) == (minute, 40)
    clock.now += 41
    assert await first.begin([minute, day]) is None, "what was refused has not been counted"
    assert await second.begin([at_once]) is None
    exceeded = await first.begin([at_once])
    assert exceeded is not None
    assert exceeded.limit == at_once
    alone = LocalUse(records[0], "one", list, clock)
    assert await alone.begin([at_once]) is None, "the other is gone, and its calls with it"
    alone.add(at_once, -1)
    second.add(size, 100)
    exceeded = await first.begin([size])
    assert exceeded is not None
    assert exceeded.limit == size
    clock.now += 86_400
    assert await first.begin([size, day]) is None


async def test_a_call_that_ended_while_the_file_could_not_be_used_is_given_back_afterwards(
    records: tuple[LocalRecords, LocalRecords], clock: Clock
) -> None:
    first = LocalUse(records[0], "one", lambda: ["two"], clock)
    second = LocalUse(records[1], "two", lambda: ["one"], clock)
    at_once = SharedLimit("calls_at_once", 1, ("principal", "alice"))
    assert await first.begin([at_once]) is None
    records[0].connection.execute("PRAGMA busy_timeout = 1")
    with records[1].transaction():
        first.add(at_once, -1)
    assert await second.begin([at_once]) is not None
    first.renew()
    assert await second.begin([at_once]) is None


async def test_what_happens_again_is_counted_by_all_until_it_has_not_for_a_while(
    records: tuple[LocalRecords, LocalRecords], clock: Clock
) -> None:
    first = LocalUse(records[0], "one", lambda: ["two"], clock)
    second = LocalUse(records[1], "two", lambda: ["one"], clock)
    assert [await use.repeated(("wrong", "1.2.3.4"), 60) for use in (first, second, first)] == [1, 2, 3]
    clock.now += 61
    assert await second.repeated(("wrong", "1.2.3.4"), 60) == 1

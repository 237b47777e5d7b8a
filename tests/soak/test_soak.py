"""The short form of `make soak`: a real gateway is back where it was, after hosts and upstreams that leave badly."""

import sys

import pytest

from benchmarks import soak


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.timeout(120)
def test_nothing_outlives_its_reason() -> None:
    start, rows = soak.run(sessions=24, kills=16, hangs=5)
    print(soak.table(start, rows))
    assert [row.trial for row in rows if not row.size.is_back_at(start)] == []


def test_the_table_tells_what_is_not_back() -> None:
    start = soak.Size(processes=3, files=20, threads=4, rss=50_000_000)
    back = soak.Row("sessions", 1.25, start._replace(rss=51_000_000))
    table = soak.table(start, [back])
    assert table.splitlines()[-1].endswith("back")
    for left in ({"processes": 4}, {"processes": 2}, {"files": 21}, {"threads": 5}, {"rss": 50_000_000 + 2**25}):
        table = soak.table(start, [soak.Row("sessions", 1.25, start._replace(**left))])
        assert table.splitlines()[-1].endswith("NOT BACK")

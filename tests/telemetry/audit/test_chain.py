"""Chains of lines: they go on over rotation and restarts, and show every change."""

import json
import os
import stat
from pathlib import Path

import pytest

from gateway.telemetry.audit.chain import BEFORE_THE_FIRST, HEAD, Chain, chains_at, files_of, read_head
from gateway.telemetry.audit.verify import records_of, verify_chain


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "log" / "audit.jsonl"


def opened(path: Path, **settings: int) -> Chain:
    return Chain(path, **{"max_bytes": 1_000_000, "keep": 0, **settings})


def write(path: Path, *texts: str, **settings: int) -> None:
    """What one run of a gateway writes."""
    chain = opened(path, **settings)
    for text in texts:
        chain.append([{"event": text}])
        chain.keep_head()
    chain.close()


def breaks(path: Path) -> list[str]:
    return [f"{one.file.name}:{one.line}: {one.what}" for one in verify_chain(path).breaks]


def edit(path: Path, *lines: bytes) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_each_line_has_the_hash_of_the_one_before(path):
    write(path, "a", "b")
    write(path, "c")
    records = list(records_of(path))
    assert [record["event"] for record in records] == ["a", "b", "c"]
    assert [record["sequence"] for record in records] == [1, 2, 3]
    assert records[0]["previous"] == BEFORE_THE_FIRST
    found = verify_chain(path)
    assert (found.breaks, found.remarks, found.lines, found.files) == ([], [], 3, 1)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_nobody_else_can_read_it(path):
    write(path, "a")
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    write(path, "b")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_it_goes_on_over_rotation(path):
    write(path, *"abcdefgh", max_bytes=300)
    files = files_of(path)
    assert len(files) > 2
    assert files[0].name == "audit.000000000001.jsonl"
    assert files[-1] == path
    assert breaks(path) == []
    assert [record["event"] for record in records_of(path)] == list("abcdefgh")
    edit(files[1], *lines_of(files[1])[:-1])
    missing = json.loads(lines_of(files[2])[0])["sequence"] - 1
    assert breaks(path) == [f"{files[2].name}:1: line {missing} is missing"]


def test_a_file_is_begun_each_day(path):
    write(path, "a")
    os.utime(path, (0, 0))
    write(path, "b")
    assert [file.name for file in files_of(path)] == ["audit.000000000001.jsonl", "audit.jsonl"]
    assert breaks(path) == []


def test_only_so_many_files_are_kept(path):
    write(path, *"abcdefghijkl", max_bytes=300, keep=2)
    assert len(files_of(path)) == 3
    assert next(records_of(path))["sequence"] > 1
    assert breaks(path) == []
    files_of(path)[0].unlink()
    first = next(records_of(path))["sequence"]
    assert len(breaks(path)) == 1
    assert f"to {first - 1} are missing" in breaks(path)[0]


def test_a_changed_line_is_found(path):
    write(path, "a", "b", "c")
    first, second, third = lines_of(path)
    edit(path, first, second.replace(b'"b"', b'"x"'), third)
    assert breaks(path) == ["audit.jsonl:3: line 2 was changed: line 3 has another hash of it"]


def test_a_changed_last_line_is_found(path):
    write(path, "a", "b")
    first, second = lines_of(path)
    edit(path, first, second.replace(b'"b"', b'"x"'))
    assert breaks(path) == ["audit.jsonl:0: line 2 was changed, by what the head file says"]


def test_removed_lines_are_found(path):
    write(path, *"abcde")
    first, _, _, _, fifth = lines_of(path)
    edit(path, first, fifth)
    assert breaks(path) == ["audit.jsonl:2: lines 2 to 4 are missing"]
    edit(path, fifth)
    assert breaks(path) == ["audit.jsonl:1: lines 1 to 4 are missing"]


def test_lines_that_are_exchanged_inserted_or_repeated_are_found(path):
    write(path, *"abcd")
    first, second, third, fourth = lines_of(path)
    edit(path, first, third, second, fourth)
    assert len(breaks(path)) == 3
    edit(path, first, second, second, third, fourth)
    assert breaks(path)[0] == "audit.jsonl:3: line 2 does not follow line 2: lines were inserted or exchanged"
    edit(path, first, second, b"anything", third, fourth)
    assert breaks(path) == ["audit.jsonl:3: is not a line of the audit trail"]


def test_lines_that_are_cut_off_are_found(path):
    write(path, *"abcd")
    edit(path, *lines_of(path)[:2])
    assert breaks(path) == ["audit.jsonl:0: lines 3 to 4 are cut off the end"]
    # The next run does not hide it.
    write(path, "e")
    assert breaks(path) == ["audit.jsonl:3: lines 3 to 4 are missing"]


def test_files_that_are_removed_altogether_are_missed(path):
    write(path, *"abc")
    path.unlink()
    assert breaks(path) == ["audit.jsonl:0: lines 1 to 3 are cut off the end"]
    write(path, "d")
    assert breaks(path) == ["audit.jsonl:1: lines 1 to 3 are missing"]


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_without_its_head_a_chain_is_not_whole(path, how):
    write(path, "a", "b")
    head = path.with_name(path.name + HEAD)
    head.unlink() if how == "missing" else head.write_text("{}")
    edit(path, *lines_of(path)[:1])
    assert breaks(path) == [f"audit.jsonl:0: its head file is {how}, so lines may have been cut off the end"]
    chain = opened(path)
    chain.append([{"event": "start", **chain.resumed()}])
    chain.keep_head()
    chain.close()
    said = f"its head file was {how} when the gateway started, so lines before may have been cut off"
    assert breaks(path) == [f"audit.jsonl:2: {said}"]


def test_a_gateway_that_was_killed_before_it_kept_its_head_leaves_no_break(path):
    write(path, "a")
    chain = opened(path)
    chain.append([{"event": "b"}, {"event": "c"}])
    chain.close()
    found = verify_chain(path)
    assert found.breaks == []
    assert found.remarks == ["2 lines after the head: a gateway is writing, or was killed"]
    write(path, "d")
    assert (breaks(path), verify_chain(path).remarks) == ([], [])


def test_a_line_that_was_never_finished_is_told_from_one_that_was_changed(path):
    write(path, "a", "b")
    with path.open("ab") as file:
        file.write(b'{"sequence":3,"prev')
    assert breaks(path) == []
    chain = opened(path)
    chain.append([{"event": "start", **chain.resumed()}])
    chain.keep_head()
    chain.close()
    found = verify_chain(path)
    assert (found.breaks, len(found.remarks)) == ([], 1)
    assert "a line that was never finished" in found.remarks[0]
    write(path, "c")
    assert breaks(path) == []


def test_nothing_is_half_written_when_the_disk_is_full(path, monkeypatch):
    chain = opened(path)
    chain.append([{"event": "a"}])
    real = os.write

    def full(descriptor: int, content: memoryview) -> int:
        if len(content) < 40:
            raise OSError(28, "No space left on device")
        return real(descriptor, content[: len(content) // 2])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        chain.append([{"event": "b"}])
    monkeypatch.undo()
    chain.append([{"event": "c"}])
    chain.keep_head()
    chain.close()
    assert [record["event"] for record in records_of(path)] == ["a", "c"]
    assert breaks(path) == []


def test_gateways_beside_each_other_have_files_of_their_own(path):
    first = opened(path)
    second = opened(path)
    assert (first.path.name, second.path.name) == ("audit.jsonl", "audit-2.jsonl")
    for chain in (first, second):
        chain.append([{"event": chain.path.name}])
        chain.keep_head()
        chain.close()
    assert chains_at(path) == [first.path, second.path]
    assert all(breaks(one) == [] for one in chains_at(path))
    third = opened(path)
    assert third.path == path
    third.close()


def test_the_head_is_what_was_written_last(path):
    write(path, "a", "b")
    head = read_head(path)
    assert head is not None
    assert head.last.sequence == 2
    assert head.last.sha256 == verify_chain(path).last.sha256


def test_a_gateway_that_writes_nothing_leaves_no_chain(path):
    first = opened(path)
    opened(path).close()
    first.close()
    assert chains_at(path) == []
    assert breaks(path) == []


def test_the_end_of_a_long_file_is_found(path):
    write(path, "a", "b" * 300_000, "c", "d" * 100_000)
    with path.open("ab") as file:
        file.write(b"torn" * 50_000)
    chain = opened(path)
    chain.append([{"event": "start", **chain.resumed()}])
    chain.keep_head()
    chain.close()
    found = verify_chain(path)
    assert (found.breaks, len(found.remarks), found.last.sequence) == ([], 1, 5)


def test_a_chain_that_was_removed_with_its_head_begins_again_and_is_whole(path):
    """The hashes have no key: docs/audit.md says what holds against this."""
    write(path, "a", "b")
    for file in path.parent.iterdir():
        file.unlink()
    write(path, "c")
    found = verify_chain(path)
    assert (found.breaks, found.last.sequence) == ([], 1)

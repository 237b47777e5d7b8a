"""The limit of memory of the control group, in both versions of control groups, and what is in use."""

from pathlib import Path

import pytest

from gateway.system.memory_limit import ControlGroup, memory_uses

MIB = 1024 * 1024


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def found(tmp_path: Path, cgroup: str) -> ControlGroup | None:
    write(tmp_path / "proc", cgroup=cgroup)
    return ControlGroup.found(tmp_path / "proc", tmp_path / "cgroup")


def test_the_innermost_limit_counts(tmp_path: Path) -> None:
    stat = f"anon 5\ninactive_file {10 * MIB}\nactive_file 7"
    write(tmp_path / "cgroup/a.slice", memory__max=str(512 * MIB), memory__current=str(90 * MIB), memory__stat=stat)
    write(tmp_path / "cgroup/a.slice/b.service", memory__max="max", memory__current=str(20 * MIB))
    group = found(tmp_path, "0::/a.slice/b.service")
    assert group is not None
    assert (group.limit, group.used()) == (512 * MIB, 80 * MIB)
    (use,) = memory_uses(group, None)
    assert use.share == pytest.approx(80 / 512)


def test_version_one_names_everything_otherwise(tmp_path: Path) -> None:
    write(
        tmp_path / "cgroup/memory/docker/x",
        memory__limit_in_bytes=str(256 * MIB),
        memory__usage_in_bytes=str(64 * MIB),
        memory__stat=f"inactive_file 1\ntotal_inactive_file {4 * MIB}",
    )
    group = found(tmp_path, "12:cpu,cpuacct:/docker/x\n5:memory:/docker/x")
    assert group is not None
    assert (group.limit, group.used()) == (256 * MIB, 60 * MIB)


def test_in_a_container_the_group_is_the_root(tmp_path: Path) -> None:
    write(tmp_path / "cgroup", memory__max=str(MIB), memory__current="17", memory__stat="inactive_file x")
    group = found(tmp_path, "0::/../../elsewhere")
    assert group is not None
    assert (group.limit, group.used()) == (MIB, 17)


@pytest.mark.parametrize("cgroup", ["", "nonsense", "0::/gone", "5:memory:/huge", "1:name=systemd:/x"])
def test_without_a_limit_there_is_no_group(tmp_path: Path, cgroup: str) -> None:
    write(tmp_path / "cgroup", memory__max="max")
    write(tmp_path / "cgroup/memory/huge", memory__limit_in_bytes="9223372036854771712")
    assert found(tmp_path, cgroup) is None
    assert memory_uses(None, None) == []


def test_the_process_itself_counts_against_the_configured_limit() -> None:
    (use,) = memory_uses(None, 10**12)
    assert use.limit == 10**12
    assert 5 * MIB < use.used < 10**11

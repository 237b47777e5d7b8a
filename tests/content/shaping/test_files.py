"""Files for hosts: only in the folder that was allowed, safe names, private, and gone again."""

import os
import stat
from collections.abc import Collection
from pathlib import Path

import anyio
import pytest

from gateway.config.content_settings import FilesSettings
from gateway.content.shaping.files import OWN_FOLDER, HostFiles
from gateway.errors import NotWritten

pytestmark = pytest.mark.anyio
PDF = "application/pdf"


async def nowhere() -> Collection[str]:
    return ()


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("file:///home/me/Yearly%20report.pdf", "Yearly-report-"),
        ("../../etc/passwd", "passwd-"),
        ("doc://x/..", "document-"),
        ("a\x00b\n;rm -rf $HOME.pdf", "a-b-rm--rf-HOME-"),
        ("x" * 500 + ".pdf", "x" * 40 + "-"),
        (None, "document-"),
        ("http://[broken", "broken-"),
    ],
)
async def test_a_name_is_safe_whatever_the_upstream_calls_it(tmp_path: Path, name: str | None, begins: str) -> None:
    async with HostFiles(FilesSettings(dir=tmp_path)) as files:
        path = Path(await files.write(b"content", PDF, name, nowhere))
        assert path.parent == tmp_path
        assert path.name.startswith(begins)
        assert path.suffix == ".pdf"
        assert path.read_bytes() == b"content"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_equal_content_is_one_file_and_other_content_another(tmp_path: Path) -> None:
    async with HostFiles(FilesSettings(dir=tmp_path / "deep" / "er")) as files:
        first, again = [await files.write(b"one", PDF, "a.pdf", nowhere) for _ in range(2)]
        assert first == again != await files.write(b"two", PDF, "a.pdf", nowhere)
        assert stat.S_IMODE((tmp_path / "deep" / "er").stat().st_mode) == 0o700


async def test_all_files_are_gone_at_the_end_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    async with HostFiles(FilesSettings(dir=tmp_path)) as files:
        await files.write(b"one", PDF, "a.pdf", nowhere)
        assert len(list(tmp_path.iterdir())) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


async def test_all_files_are_gone_when_the_work_is_cancelled(tmp_path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with HostFiles(FilesSettings(dir=tmp_path)) as files:
            await files.write(b"one", PDF, "a.pdf", nowhere)
            scope.cancel()
            await anyio.sleep_forever()
    assert list(tmp_path.iterdir()) == []


async def test_a_file_is_removed_once_it_has_expired(tmp_path: Path) -> None:
    async with HostFiles(FilesSettings(dir=tmp_path, expires=0.05)) as files:
        for content in (b"one", b"two"):
            path = Path(await files.write(content, PDF, "a.pdf", nowhere))
            with anyio.fail_after(20):
                while path.exists():  # noqa: ASYNC110 - a file that goes tells nobody
                    await anyio.sleep(0.01)


async def test_the_oldest_file_makes_way_for_the_newest(tmp_path: Path) -> None:
    async with HostFiles(FilesSettings(dir=tmp_path, max_bytes=25)) as files:
        paths = [Path(await files.write(bytes([number]) * 10, PDF, "a.pdf", nowhere)) for number in range(3)]
        assert [path.exists() for path in paths] == [False, True, True]
        with pytest.raises(NotWritten, match="max_bytes"):
            await files.write(bytes(26), PDF, "a.pdf", nowhere)


async def test_no_link_and_no_other_file_is_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "gateway.content.shaping.files.secrets.token_hex", lambda _: "abcdef"
    )  # a name that can be foreseen
    victim = tmp_path / "victim"
    victim.write_text("precious")
    shown = tmp_path / "shown"
    async with HostFiles(FilesSettings(dir=shown)) as files:
        path = Path(await files.write(b"one", PDF, "a.pdf", nowhere))
    path.symlink_to(victim)
    async with HostFiles(FilesSettings(dir=shown)) as files:
        with pytest.raises(NotWritten, match="another file"):
            await files.write(b"one", PDF, "a.pdf", nowhere)
    assert victim.read_text() == "precious"


async def test_a_workspace_gets_a_folder_of_our_own_that_git_ignores(tmp_path: Path) -> None:
    async def roots() -> Collection[str]:
        return ("https://example.com/", "file://other/tmp", "file:///does/not/exist", "file:///", tmp_path.as_uri())

    async with HostFiles(FilesSettings(roots=True)) as files:
        path = Path(await files.write(b"one", PDF, "a.pdf", roots))
        assert path.parent == Path(os.path.realpath(tmp_path)) / OWN_FOLDER
        assert (path.parent / ".gitignore").read_text().endswith("*\n")
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_of_that_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    elsewhere, workspace = tmp_path / "elsewhere", tmp_path / "workspace"
    elsewhere.mkdir()
    workspace.mkdir()
    (workspace / OWN_FOLDER).symlink_to(elsewhere, target_is_directory=True)

    async def roots() -> Collection[str]:
        return (workspace.as_uri(),)

    async with HostFiles(FilesSettings(roots=True)) as files:
        with pytest.raises(NotWritten, match="not a folder"):
            await files.write(b"one", PDF, "a.pdf", roots)
    assert list(elsewhere.iterdir()) == []


async def test_roots_are_not_even_asked_for_unless_they_count(tmp_path: Path) -> None:
    async def roots() -> Collection[str]:
        raise AssertionError("asked")

    async with HostFiles(FilesSettings()) as files:
        with pytest.raises(NotWritten, match="no folder is allowed"):
            await files.write(b"one", PDF, "a.pdf", roots)
    async with HostFiles(FilesSettings(dir=tmp_path, roots=True)) as files:
        await files.write(b"one", PDF, "a.pdf", roots)
    async with HostFiles(FilesSettings(roots=True)) as files:
        with pytest.raises(NotWritten, match="names no folder"):
            await files.write(b"one", PDF, "a.pdf", nowhere)

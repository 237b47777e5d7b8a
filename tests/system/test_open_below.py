"""Files in allowed folders, with links in the way."""

import os
from pathlib import Path

import pytest

from gateway.system.open_below import open_below


def content(opened: tuple[int, Path] | None) -> bytes | None:
    if opened is None:
        return None
    with os.fdopen(opened[0], "rb") as file:
        return file.read()


def test_what_lies_below_is_opened_and_nothing_else(tmp_path: Path) -> None:
    inner = tmp_path / "allowed" / "a" / "b"
    inner.mkdir(parents=True)
    (inner / "file").write_bytes(b"mine")
    (tmp_path / "outside").write_bytes(b"secret")
    (inner / "link").symlink_to(tmp_path / "outside")
    allowed = [tmp_path / "allowed"]
    assert content(open_below(allowed, inner / "file")) == b"mine"
    assert open_below(allowed, inner / "link") is None
    assert open_below(allowed, inner / ".." / ".." / ".." / "outside") is None
    assert open_below(allowed, tmp_path / "allowed") is None
    assert open_below([], inner / "file") is None


def test_a_link_within_the_folder_leads_to_its_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"mine")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert content(open_below([tmp_path], tmp_path / "link" / "file")) == b"mine"
    assert content(open_below([tmp_path / "link"], tmp_path / "real" / "file")) == b"mine"


@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="the system opens nothing by a folder's descriptor")
def test_a_folder_that_is_exchanged_for_a_link_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "allowed" / "d").mkdir(parents=True)
    (tmp_path / "allowed" / "d" / "passwd").write_bytes(b"mine")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "passwd").write_bytes(b"secret")
    really = os.path.realpath

    def exchanging(path: Path) -> str:
        found = really(path)
        if found.endswith("passwd"):
            (tmp_path / "allowed" / "d").rename(tmp_path / "allowed" / "old")
            (tmp_path / "allowed" / "d").symlink_to(tmp_path / "etc")
        return found

    monkeypatch.setattr(os.path, "realpath", exchanging)
    with pytest.raises(OSError):
        open_below([tmp_path / "allowed"], tmp_path / "allowed" / "d" / "passwd")

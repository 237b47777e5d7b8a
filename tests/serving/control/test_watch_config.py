"""A configuration file that changes, in all the ways in which files are changed."""

import os
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import watchfiles

from gateway.config.fingerprint import fingerprint
from gateway.serving.control import watch_config
from gateway.serving.control.watch_config import folders_of, watch

pytestmark = pytest.mark.anyio


class News:
    """What was noticed: the file's text each time, and a way to wait for the next."""

    def __init__(self, path):
        self.path = path
        self.texts = []
        self._send, self._receive = anyio.create_memory_object_stream(100)

    async def __call__(self):
        self.texts.append(self.path.read_text() if self.path.exists() else None)
        self._send.send_nowait(self.texts[-1])

    async def next(self):
        return await self._receive.receive()


@asynccontextmanager
async def watched(path, seen: Any = ...):
    news = News(path)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, path, fingerprint(path) if seen is ... else seen, news)
            yield news
            tasks.cancel_scope.cancel()
    for stream in (news._send, news._receive):
        stream.close()


async def test_a_file_that_is_written_in_place_or_renamed_into_place(tmp_path):
    path = tmp_path / "g.toml"
    path.write_text("one")
    async with watched(path) as news:
        path.write_text("two")
        assert await news.next() == "two"
        (tmp_path / ".g.toml.swp").write_text("three")
        (tmp_path / ".g.toml.swp").replace(path)
        assert await news.next() == "three"


async def test_what_changed_before_the_watch_began_is_noticed(tmp_path):
    path = tmp_path / "g.toml"
    path.write_text("new")
    async with watched(path, seen=b"another") as news:
        assert await news.next() == "new"


async def test_the_swapped_link_of_a_mounted_configmap(tmp_path):
    for version in ("one", "two"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "g.toml").write_text(version)
    (tmp_path / "..data").symlink_to("..one")
    path = tmp_path / "g.toml"
    path.symlink_to("..data/g.toml")
    assert folders_of(path) == {tmp_path, tmp_path / "..data"}
    async with watched(path) as news:
        (tmp_path / "..data_tmp").symlink_to("..two")
        os.replace(tmp_path / "..data_tmp", tmp_path / "..data")
        assert await news.next() == "two"


async def test_a_link_to_a_file_elsewhere_and_then_to_another(tmp_path):
    files = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / "real.toml")
        files[-1].write_text(name)
    (tmp_path / "etc").mkdir()
    path = tmp_path / "etc" / "g.toml"
    path.symlink_to(files[0])
    async with watched(path) as news:
        files[0].write_text("a changed")
        assert await news.next() == "a changed"
        path.with_suffix(".new").symlink_to(files[1])
        path.with_suffix(".new").replace(path)
        assert await news.next() == "b"
        files[1].write_text("b changed")
        assert await news.next() == "b changed"


async def test_other_files_and_equal_content_are_no_news(tmp_path):
    path = tmp_path / "g.toml"
    path.write_text("one")
    async with watched(path) as news:
        (tmp_path / "other").write_text("x")
        path.write_text("one")
        path.write_text("two")
        assert await news.next() == "two"
        assert news.texts == ["two"]


async def test_a_file_that_goes_and_comes_back(tmp_path):
    path = tmp_path / "g.toml"
    path.write_text("one")
    async with watched(path) as news:
        path.unlink()
        assert await news.next() is None
        path.write_text("one")
        assert await news.next() == "one"


async def test_where_nothing_can_be_watched_the_file_is_looked_at_now_and_then(tmp_path, monkeypatch, caplog):
    def refuse(*folders, **options):
        raise OSError("too many watches")

    monkeypatch.setattr(watchfiles, "awatch", refuse)
    monkeypatch.setattr(watch_config, "_CHECK_MILLISECONDS", 50)
    path = tmp_path / "g.toml"
    path.write_text("one")
    async with watched(path) as news:
        for text in ("two", "three"):
            path.write_text(text)
            assert await news.next() == text
    assert caplog.text.count("too many watches") == 1


async def test_the_end_does_not_wait_for_news(tmp_path, monkeypatch):
    monkeypatch.setattr(watch_config, "_CHECK_MILLISECONDS", 600_000)  # when the watching thread looks up otherwise
    path = tmp_path / "g.toml"
    path.write_text("one")
    with anyio.fail_after(60):
        async with watched(path, seen=b"") as news:
            await news.next()

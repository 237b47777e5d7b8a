"""Recordings of real servers, made for one test."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.revisions import Era
from gateway.upstream import Upstream, Upstreams
from gateway.upstream.recording.recorder import USUAL_LIMIT, Recorder, RecordOptions
from tests.upstream.conftest import Changes

Open = Callable[..., AbstractAsyncContextManager[Upstream]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the recording."""
    return tmp_path / "recording"


@pytest.fixture
def opened(changes: Changes, folder: Path) -> Open:
    """`async with opened(settings, record=True) as upstream`: one upstream, `it`, recorded or not, settled."""

    @asynccontextmanager
    async def opened(
        settings: UpstreamSettings, *, record: bool = False, era: Era | None = None, limit: int = USUAL_LIMIT
    ) -> AsyncIterator[Upstream]:
        every = Settings(upstreams={"it": settings})
        recorder = Recorder(RecordOptions(folder, limit), every) if record else None
        upstreams = Upstreams(every.upstreams, on_change=changes, recorder=recorder)
        if era is not None:
            upstreams["it"].eras.found(era, era)
        async with upstreams:
            with anyio.fail_after(30):
                assert await upstreams.settled(20)
            yield upstreams["it"]
        if recorder is not None:
            async with recorder:
                pass

    return opened

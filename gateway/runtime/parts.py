"""The parts of a gateway that are opened once for it, and closed with it."""

import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.config.find_config import cache_folder
from gateway.config.schema import Settings

if TYPE_CHECKING:
    from gateway.admission.admission import Admission
    from gateway.content.arguments.files import TemporaryFiles
    from gateway.content.describe import Describer
    from gateway.content.describe.tools import CallTool
    from gateway.content.links.file_transfers import FileTransfers
    from gateway.content.links.links import Links
    from gateway.content.shaping import Shaper
    from gateway.content.shaping.files import HostFiles
    from gateway.content.store import KeptStore
    from gateway.routing.code_mode import CodeMode
    from gateway.routing.long_calls import LongCalls
    from gateway.telemetry import Telemetry
    from gateway.telemetry.media import CountedMedia
    from gateway.upstream.bridging.bridge import Bridge


@dataclass(frozen=True)
class Parts:
    """The parts that are opened once for a gateway, and closed with it."""

    store: "KeptStore"
    links: "Links"
    media: "CountedMedia"
    bridge: "Bridge"
    long_calls: "LongCalls"
    transfers: "FileTransfers | None"
    describer: "Describer | None"
    files: "HostFiles"
    temporary: "TemporaryFiles"
    admission: "Admission"
    code_mode: "CodeMode | None"

    def shaper(self, settings: Settings) -> "Shaper":
        from gateway.content.shaping import Shaper

        return Shaper(
            self.store,
            self.media,
            max_blocks=settings.limits.blocks,
            describer=self.describer,
            files=self.files,
            links=self.links,
            measures=settings.tokens.count,
        )


@asynccontextmanager
async def open_parts(settings: Settings, telemetry: "Telemetry", call_tool: "CallTool") -> AsyncGenerator[Parts]:
    """Open the parts. `call_tool` calls a tool of an upstream, for a describer."""
    from gateway.admission.admission import Admission
    from gateway.content.arguments.files import temporary_files
    from gateway.content.describe import open_describer
    from gateway.content.links.links import Links
    from gateway.content.media import MediaWorkers
    from gateway.content.shaping.files import HostFiles
    from gateway.content.store import open_store
    from gateway.routing.long_calls import open_long_calls
    from gateway.telemetry.media import CountedMedia
    from gateway.upstream.bridging.bridge import open_bridge

    cache = cache_folder(os.environ)
    admission = telemetry.metrics.admission = Admission(settings.overload, media_workers=settings.media.workers)
    most_waiting, is_short = admission.capacity.media_queue, admission.pressure.is_short
    async with (
        admission.watching(),
        open_store(settings.store) as store,
        temporary_files(cache / "arguments" if cache is not None else None) as temporary,
        MediaWorkers(settings.media, most_waiting=most_waiting, is_short=is_short) as media,
        open_bridge() as bridge,
        open_long_calls(settings.long_calls) as long_calls,
        open_describer(settings.describe, media, call_tool) as describer,
        HostFiles(settings.files) as files,
        _open_code_mode(settings, store) as code_mode,
    ):
        telemetry.metrics.store = lambda: store.usage
        telemetry.metrics.media_waiting = lambda: media.waiting
        telemetry.metrics.long_calls = lambda: len(long_calls)
        links = Links(settings.content.link_lifetime, settings.gateway.public_url)
        counted = CountedMedia(media, telemetry.metrics)
        transfers = _file_transfers(settings, store, links)
        opened = (store, links, counted, bridge, long_calls, transfers, describer, files, temporary, admission)
        yield Parts(*opened, code_mode)


def _open_code_mode(settings: Settings, store: "KeptStore") -> AbstractAsyncContextManager["CodeMode | None"]:
    """Open code mode; nothing of it is loaded if it is off."""
    if not settings.code_mode.enabled:
        return nullcontext()
    from gateway.routing.code_mode import open_code_mode

    return open_code_mode(settings.code_mode, store)


def _file_transfers(settings: Settings, store: "KeptStore", links: "Links") -> "FileTransfers | None":
    if not settings.experimental.files:
        return None
    from gateway.content.links.file_transfers import FileTransfers

    return FileTransfers(store, links, settings.content.max_upload_bytes)

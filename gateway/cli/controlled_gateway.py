"""The gateway as run by `serve`: controlled by `status`, `reload`, `stop` and the like, following its configuration."""

import logging
import math
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from gateway.config.documents import read_document
from gateway.config.early_config import keep_introductions
from gateway.config.load_settings import LoadedSettings, load_settings
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.model.claims import CameWithOf
from gateway.core.tools.instructions import Introductions
from gateway.errors import ConfigError
from gateway.runtime import Gateway, run_gateway
from gateway.serving.control.status_report import Serving

if TYPE_CHECKING:
    from gateway.serving.mcp.downstream import Downstream
    from gateway.upstream.recording.recorder import RecordOptions

ALONE = (
    "[cluster] is not used over stdio: this gateway serves its hosts alone, and shares nothing with the replicas "
    "(only `serve --http` joins them)"
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Start:
    """Input for starting the gateway: the settings, a profile for every host, and how to read the settings again."""

    settings: Settings
    profile: str | None
    path: Path | None
    seen: bytes | None
    overlay: Callable[[Settings], Settings]
    """Applies the command line's options on top of the file's settings."""
    calibrating: bool = False
    """Whether hosts may calibrate the gateway at any time."""
    record: "RecordOptions | None" = None
    """Where to record what the upstreams answer, if anywhere."""
    reaches_upstreams: bool = True
    """False if a recording answers in their place."""
    on_refused: Callable[[Mapping[str, Any]], object] | None = None
    """Called in the event loop with the document of a file that cannot be used, as it is written."""

    @classmethod
    def of(cls, loaded: LoadedSettings, profile: str | None, overlay: Callable[[Settings], Settings]) -> "Start":
        """Make the input from settings that have just been loaded."""
        path = loaded.path.absolute() if loaded.path is not None else None
        start = cls(overlay(loaded.settings), profile, path, loaded.seen, overlay)
        return replace(start, reaches_upstreams=loaded.reaches_upstreams)

    def load(self) -> Settings:
        """Read the settings from the file again; call this in a worker thread. Raises ConfigError."""
        return self.overlay(load_settings(self.path, reaches_upstreams=self.reaches_upstreams).settings)

    async def refused(self) -> None:
        """Show `on_refused` the file, which cannot be used for whatever reason, if it can at least be read."""
        if self.path is not None and self.on_refused is not None:
            with suppress(ConfigError):
                self.on_refused(await anyio.to_thread.run_sync(read_document, self.path))


class HostFacingState:
    """The MCP server, once there is one: its connected hosts, and the identity that it presents to them."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._downstream: Downstream | None = None

    def serves(self, downstream: "Downstream") -> None:
        """Set the server that serves the hosts from now on."""
        self._downstream = downstream
        self._serving.connected_hosts = downstream.presence.connected_hosts

    def applied(self, settings: Settings) -> None:
        """Update the identity for changed settings, for hosts that connect from now on; forget those without access."""
        if self._downstream is not None:
            tokens = settings.access.tokens
            self._downstream.presence.forget(lambda caller: caller.token is not None and caller.token not in tokens)
            instructions = settings.gateway.instructions
            self._downstream.introduce(self._downstream.identity._replace(instructions=instructions))

    def introduced(self, others: Introductions) -> None:
        """Update the identity for changed introductions of upstreams, for hosts that connect from now on."""
        if self._downstream is not None:
            self._downstream.introduce(self._downstream.identity._replace(others=others))


@asynccontextmanager
async def controlled_gateway(
    start: Start,
    serving: Serving,
    *,
    stop: Callable[[], None],
    on_applied: Callable[[Settings], None],
    on_introduced: Callable[[Introductions], None],
    expected: Callable[[], Caller | None] | None = None,
    over_http: bool = False,
    came_with: CameWithOf = lambda _: None,
) -> AsyncGenerator[Gateway]:
    """Run the gateway with its control plane. `stop` is called on the command to stop.

    `on_introduced` is called with the upstreams' instructions for models, now and whenever they change.
    """
    from gateway.serving.control.control_plane import under_control

    load = start.load if start.path is not None else None
    async with (
        run_gateway(
            start.settings,
            profile=start.profile,
            expected=expected,
            over_http=over_http,
            came_with=came_with,
            principal=serving.principal,
            record=start.record,
        ) as gateway,
        under_control(
            gateway, serving, stop=stop, load=load, seen=start.seen, on_applied=on_applied, on_refused=start.refused
        ),
    ):

        def introduced(others: Introductions) -> None:
            on_introduced(others)
            if start.path is not None:  # a file of a few kilobytes, rarely written
                enabled = [name for name, one in gateway.settings.upstreams.items() if one.enabled]
                keep_introductions(start.path, enabled, others, os.environ)

        if start.calibrating:
            gateway.calibration.open(math.inf)
        if not over_http and start.settings.cluster.url is not None:
            logger.warning("%s", ALONE)
        gateway.router.on_introductions(introduced)
        introduced(gateway.router.introductions)
        yield gateway

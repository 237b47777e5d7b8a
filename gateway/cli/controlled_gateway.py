"""The gateway as `serve` runs it: open to `status`, `logs`, `reload` and `stop`, and following its configuration."""

import math
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.config.early_config import keep_introductions
from gateway.config.load_settings import LoadedSettings, load_settings
from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.tools.instructions import Introductions
from gateway.runtime import Gateway, run_gateway
from gateway.serving.control.status_report import Serving
from gateway.serving.control.watch_config import fingerprint

if TYPE_CHECKING:
    from gateway.serving.mcp.mcp_server import Downstream


@dataclass(frozen=True)
class Start:
    """What the gateway is started from: settings and a profile for every host, and how the settings are read again."""

    settings: Settings
    profile: str | None
    path: Path | None
    seen: bytes | None
    overlay: Callable[[Settings], Settings]
    """Puts what the command line says over what the file says."""
    calibrating: bool = False
    """Whether its hosts may calibrate it at any time."""

    @classmethod
    def of(cls, loaded: LoadedSettings, profile: str | None, overlay: Callable[[Settings], Settings]) -> "Start":
        """From settings that have just been loaded."""
        path = loaded.path.absolute() if loaded.path is not None else None
        seen = fingerprint(path) if path is not None else None
        return cls(overlay(loaded.settings), profile, path, seen, overlay)

    def load(self) -> Settings:
        """The settings as the file says them now. Raises ConfigError."""
        return self.overlay(load_settings(self.path).settings)


class HostFacingState:
    """The side of the hosts, once there is one: who is connected to it, and what they are told that the gateway is."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._downstream: Downstream | None = None

    def serves(self, downstream: "Downstream") -> None:
        """Hosts are served from now on."""
        self._downstream = downstream
        self._serving.guests = downstream.presence.guests

    def applied(self, settings: Settings) -> None:
        """Other settings are in force: whoever connects from now on is told."""
        if self._downstream is not None:
            instructions = settings.gateway.instructions
            self._downstream.introduce(self._downstream.identity._replace(instructions=instructions))

    def introduced(self, others: Introductions) -> None:
        """The upstreams say something else about themselves: whoever connects from now on is told."""
        if self._downstream is not None:
            self._downstream.introduce(self._downstream.identity._replace(others=others))


@asynccontextmanager
async def attended_gateway(
    start: Start,
    serving: Serving,
    *,
    stop: Callable[[], None],
    on_applied: Callable[[Settings], None],
    on_introduced: Callable[[Introductions], None],
    expected: Callable[[], Caller | None] | None = None,
    over_http: bool = False,
) -> AsyncGenerator[Gateway]:
    """The running gateway. `stop` is called when somebody asks for its end.

    `on_introduced` is told what the upstreams say to a model, now and whenever that changes.
    """
    from gateway.serving.control.control_plane import attended

    load = start.load if start.path is not None else None
    async with (
        run_gateway(start.settings, profile=start.profile, expected=expected, over_http=over_http) as gateway,
        attended(gateway, serving, stop=stop, load=load, seen=start.seen, on_applied=on_applied),
    ):

        def introduced(others: Introductions) -> None:
            on_introduced(others)
            if start.path is not None:  # a file of a few kilobytes, written seldom
                enabled = [name for name, one in gateway.settings.upstreams.items() if one.enabled]
                keep_introductions(start.path, enabled, others, os.environ)

        if start.calibrating:
            gateway.calibration.open(math.inf)
        gateway.router.on_introductions(introduced)
        introduced(gateway.router.introductions)
        yield gateway

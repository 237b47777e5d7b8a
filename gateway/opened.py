"""A gateway in this process, for a program that talks to models itself: `gateway.open`."""

import os
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.config.finding import FILE_NAME
from gateway.config.loading import load_settings
from gateway.config.schema import Settings
from gateway.core.catalogue import OWN
from gateway.core.model.caller import MODERN_REVISIONS, REVISIONS, Caller
from gateway.core.model.profile import ProfileSource
from gateway.core.model.wire import WireObject
from gateway.errors import ConfigError
from gateway.routing import Router
from gateway.routing.availability import Availability
from gateway.runtime import run_gateway
from gateway.toolset import OpenGateway
from gateway.toolset.source import Offer, Offered

_PROFILE = "an agent loop"
_PATIENCE_SECONDS = 60.0
_NEWEST_HANDSHAKE = next(revision for revision in reversed(REVISIONS) if revision not in MODERN_REVISIONS)


@asynccontextmanager
async def open(settings: Settings | Path | str | None = None) -> AsyncGenerator[OpenGateway]:
    """A gateway in this process: its upstreams run until the block is left.

    `settings` is the configuration's file, or its content; None: the file that `mcp-gateway serve` would find. Results
    reach the program as the upstreams gave them, whatever `[gateway] profile` says: they are lowered for the model.
    Only where a tool takes content, media is kept and named by its handle, so that the model can pass it on.

    Raises:
        ConfigError: the configuration is not there, or cannot be used. No message shows a value.
        ProfileError: a profile does not hold together.
    """
    read = settings if isinstance(settings, Settings) else _read(settings)
    # Nothing is shaped for a host, and a call waits for an upstream that is still starting. What a model may want to
    # pass on to a tool that takes content is named.
    source = ProfileSource(extends="passthrough", sets={"wait.tools_list": _PATIENCE_SECONDS, "handles": "useful"})
    patient = read.model_copy(update={"profiles": {**read.profiles, _PROFILE: source}})
    async with run_gateway(patient) as gateway:
        yield OpenGateway(_InProcess(gateway.router))


def _read(path: Path | str | None) -> Settings:
    loaded = load_settings(None if path is None else Path(os.fspath(path)))
    if loaded.path is None:
        raise ConfigError("there is no configuration", remedy=f"write ./{FILE_NAME}, or name a file")
    return loaded.settings


class _InProcess:
    """The router of this process, asked as one caller who gets everything as it is."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._caller = Caller(revision=_NEWEST_HANDSHAKE, client_name=_PROFILE, profile=_PROFILE)
        self._availability = Availability(router.upstreams)
        self._waited: set[str] = set()

    async def offer(self, providers: Collection[str] | None) -> Offer:
        """What is offered; each upstream that is asked for is waited for once."""
        wanted = [name for name in self._router.upstreams if providers is None or name in providers]
        starting = [name for name in self._availability.starting() if name in wanted and name not in self._waited]
        await self._availability.wait(starting, _PATIENCE_SECONDS)
        self._waited.update(starting)
        catalogue = self._router.catalogue(self._caller)
        routes = [(tool, catalogue.routes[tool["name"]]) for tool in catalogue.tools]
        tools = [Offered(tool, route.upstream, route.tool) for tool, route in routes if route.upstream != OWN]
        return Offer(tools, list(self._router.upstreams), self._availability.missing())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> WireObject:
        """The raw result, through the router: with its limits, logs and metrics."""
        params = {"name": name, "arguments": dict(arguments)}
        return await self._router.respond("tools/call", params, self._caller)

"""A gateway in this process, for programs that talk to models themselves: `gateway.open`."""

import os
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.agents import OpenGateway
from gateway.agents.approval import REMEDY, AskByProgram, OnApproval
from gateway.agents.gateway_context import GatewayContext
from gateway.agents.source import PROFILE, Offer, Offered, StoredContent
from gateway.config.find_config import FILE_NAME
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.content.fetch import typed
from gateway.content.store import ContentStore
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.core.model.wire import WireObject
from gateway.core.tools.catalogue import OWN
from gateway.errors import ConfigError
from gateway.routing.availability import Availability
from gateway.runtime import Gateway, run_gateway

_PATIENCE_SECONDS = 60.0


def open(settings: Settings | Path | str | None = None, *, on_approval: OnApproval | None = None) -> GatewayContext:
    """Open a gateway in this process: `async with gateway.open(...) as gw`. Its upstreams run until the block ends.

    In a notebook, where a block cannot span cells, use `gw = await gateway.open(...)`, and later `await gw.aclose()`.

    `settings` is the configuration's path or its content; None: the file that `mcp-gateway serve` would find. Results
    reach the program as the upstreams gave them, whatever `[gateway] profile` is, and are then lowered for the model.
    Media is kept and named by its handle only if a tool takes content, so that the model can pass it on.

    `on_approval` asks the user about a call that a rule lets pass only with an approval: an async function that gets
    the `gateway.agents.ApprovalRequest`, and returns True to approve this one call or False to deny it. It is asked
    about one call at a time. Without it, such calls are refused.

    Raises, on entering:
        ConfigError: the configuration is missing or invalid, or `on_approval` is not a function. No message contains a
            value.
        ProfileError: a profile is inconsistent.
    """
    return GatewayContext(lambda: _opened(settings, on_approval))


@asynccontextmanager
async def _opened(
    settings: Settings | Path | str | None, on_approval: OnApproval | None
) -> AsyncGenerator[OpenGateway]:
    ask = None if on_approval is None else AskByProgram(on_approval)
    read = settings if isinstance(settings, Settings) else _read(settings)
    async with run_gateway(read) as gateway:
        gateway.router.approvals.given_here(ask, REMEDY)
        yield OpenGateway(_InProcess(gateway))


def _read(path: Path | str | None) -> Settings:
    loaded = load_settings(None if path is None else Path(os.fspath(path)))
    if loaded.path is None:
        raise ConfigError("there is no configuration", remedy=f"write ./{FILE_NAME}, or name a file")
    return loaded.settings


class _InProcess:
    """The router of this process, called as a caller whose profile leaves results unchanged."""

    def __init__(self, gateway: Gateway) -> None:
        self._router = gateway.router
        self._gateway = gateway
        self._caller = Caller(revision=NEWEST_HANDSHAKE, client_name=PROFILE, profile=PROFILE)
        self._availability = Availability(self._router.upstreams)
        self._waited: set[str] = set()

    async def offer(self, providers: Collection[str] | None) -> Offer:
        """Return what is offered. Each requested upstream is waited for once."""
        wanted = [name for name in self._router.upstreams if providers is None or name in providers]
        starting = [
            name for name in self._availability.starting(self._caller) if name in wanted and name not in self._waited
        ]
        await self._availability.wait(starting, _PATIENCE_SECONDS, self._caller)
        self._waited.update(starting)
        catalogue = self._router.catalogue(self._caller)
        routes = [(tool, catalogue.routes[tool["name"]]) for tool in catalogue.tools]
        tools = [Offered(tool, route.upstream, route.tool) for tool, route in routes if route.upstream != OWN]
        return Offer(tools, list(self._router.upstreams), self._availability.missing(self._caller))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> WireObject:
        """Call a tool through the router, with its limits, logs and metrics, and return the raw result."""
        params = {"name": name, "arguments": dict(arguments)}
        return await self._router.respond("tools/call", params, self._caller)

    @property
    def store(self) -> ContentStore:
        """The store in which the gateway keeps content."""
        return self._gateway.store

    async def put(self, content: bytes, media_type: str | None, name: str | None) -> StoredContent:
        """Keep content for the tools of this gateway."""
        owner = self._caller.principal
        stored = await self.store.put(content, owner=owner, media_type=typed(content, media_type, name), name=name)
        return StoredContent(stored.handle, stored.media_type, stored.size, stored.kind, stored.name)

"""Tests against a recording: a gateway whose upstreams answer as they did when `serve --record` recorded them.

async with replayed_gateway("recordings/monday", host="codex") as gateway:
    result = await gateway.call("shop__picture", {"of": "chair"})
"""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from gateway.config.schema import Settings
from gateway.core.model.caller import Caller
from gateway.core.model.revisions import NEWEST_HANDSHAKE
from gateway.errors import UpstreamUnavailable
from gateway.runtime import open_gateway
from gateway.upstream.recording.replay import Match
from gateway.upstream.recording.replayed_settings import ReplayOptions, replayed_settings

if TYPE_CHECKING:
    from gateway.routing import Router

__all__ = ["ReplayedGateway", "replayed_gateway"]

_PATIENCE_SECONDS = 30.0


class ReplayedGateway:
    """A gateway that answers from a recording, as one host sees it."""

    def __init__(self, router: "Router", host: str | None) -> None:
        self._router = router
        self._caller = Caller(revision=NEWEST_HANDSHAKE, client_name="a test", profile=host)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the host is offered, as JSON."""
        return [dict(tool) for tool in self._router.catalogue(self._caller).tools]

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool, and return the CallToolResult that the host is sent, as JSON.

        Raises:
            GatewayError: the call failed when it was recorded, or the recording has no such call.
        """
        params = {"name": tool, "arguments": dict(arguments or {})}
        return await self._router.respond("tools/call", params, self._caller)

    async def read(self, uri: str) -> dict[str, Any]:
        """Read a resource, and return the result as JSON. Raises GatewayError."""
        return await self._router.respond("resources/read", {"uri": uri}, self._caller)


@asynccontextmanager
async def replayed_gateway(
    folder: Path | str, *, host: str | None = None, match: Match = "strict", settings: Settings | None = None
) -> AsyncGenerator[ReplayedGateway]:
    """Run a gateway in which the recording in `folder` answers; nothing is started, and no network is used.

    `host` is the profile of the host (`mcp-gateway profiles`); None: an unknown one. `match` is `strict` or `nearest`,
    as for `serve --replay-match`. `settings` are used for everything but the upstreams.

    Raises:
        ConfigError: there is no recording in the folder, or it cannot be used.
        UpstreamUnavailable: an upstream could not be connected to when it was recorded.
        ProfileError: there is no such host.
    """
    replayed = await to_thread.run_sync(_settings, folder, match, settings or Settings())
    async with open_gateway(replayed, profile=host) as router:
        for name in router.upstreams:
            upstream = router.upstreams[name]
            if not await upstream.ready(_PATIENCE_SECONDS):
                raise UpstreamUnavailable(name, upstream.cause or f"is {upstream.state.value}")
        yield ReplayedGateway(router, host)


def _settings(folder: Path | str, match: Match, settings: Settings) -> Settings:
    return replayed_settings(settings, ReplayOptions(Path(os.fspath(folder)).absolute(), match)).settings

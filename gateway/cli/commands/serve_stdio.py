"""`mcp-gateway serve` over stdio: one host, which has started this process."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio

from gateway._version import __version__
from gateway.cli.commands.proxy import proxy_beside
from gateway.cli.controlled_gateway import HostFacingState, Start, controlled_gateway
from gateway.cli.exit_codes import DONE
from gateway.config.schema import Settings
from gateway.core.tools.instructions import Introductions
from gateway.runtime import Gateway
from gateway.serving.control.status_report import Serving

if TYPE_CHECKING:
    from gateway.routing import Router
    from gateway.serving.mcp.early_stdio import EarlyStdio


def opened_stdio(settings: Settings, toolsets: tuple[str, ...]) -> "EarlyStdio":
    """Open the connection if the command was not started by `main`, which opens it before anything is imported."""
    from gateway.serving.mcp.early_stdio import EarlyStdio
    from gateway.serving.mcp.handshake import Identity

    opening = EarlyStdio(Identity(settings.gateway.name, __version__, instructions=settings.gateway.instructions))
    opening.toolsets = toolsets
    opening.start()
    return opening


async def serve_on_stdio(start: Start, opening: "EarlyStdio") -> int:
    """Serve the host of `opening` until it leaves."""
    from gateway.serving.logins.loopback import loopback_pages
    from gateway.serving.mcp.stdio import expected_host, serve_stdio

    settings = start.settings
    serving = Serving(start.path, time.time(), ["stdio"])
    reached = HostFacingState(serving)

    def applied(settings: Settings) -> None:
        opening.introduce(opening.identity._replace(instructions=settings.gateway.instructions))
        reached.applied(settings)

    def introduced(others: Introductions) -> None:
        opening.introduce(opening.identity._replace(others=others))
        reached.introduced(others)

    @asynccontextmanager
    async def opened() -> "AsyncGenerator[Router]":
        async with (
            controlled_gateway(
                start,
                serving,
                stop=whole.cancel,
                on_applied=applied,
                on_introduced=introduced,
                expected=lambda: expected_host(opening.handshake),
            ) as gateway,
            proxy_beside(gateway, settings, essential=False),
            loopback_pages(gateway.login_desk, partial(callback_port, gateway)),
        ):
            yield gateway.router

    with anyio.CancelScope() as whole:
        await serve_stdio(opening, opened, on_serving=reached.serves)
    return DONE


def callback_port(gateway: Gateway, upstream: str) -> int | None:
    """Return the port to which a browser comes back from a login to an upstream, if the configuration says."""
    auth = gateway.settings.upstreams[upstream].auth
    return None if auth is None else auth.callback_port

"""What a gateway serves over HTTP besides MCP: its authorization server, its console, and tools as an HTTP API."""

import os
from typing import TYPE_CHECKING

from gateway._version import __version__
from gateway.config.schema import Settings
from gateway.runtime import Gateway
from gateway.serving.console.on_request import CONSOLE_PATH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from gateway.serving.access import Access
    from gateway.serving.access.identified import Fault, Identified
    from gateway.serving.authorization.authorization_server import AuthorizationServer
    from gateway.serving.cluster.cluster import Cluster
    from gateway.serving.console.console import Console
    from gateway.serving.mcp.running_requests import RunningRequests
    from gateway.telemetry.audit.trail import AuditTrail


def authorization_server(settings: Settings, access: "Access") -> "AuthorizationServer | None":
    """Return the built-in authorization server, if there is to be one. `access` then accepts its tokens."""
    if settings.access.authorization_server is None:
        return None
    from gateway.config.find_config import state_folder
    from gateway.serving.authorization.authorization_server import opened_server

    server = opened_server(settings, state_folder(os.environ))
    access.add(server, server.issuer)
    return server


def record_access(trail: "AuditTrail | None", access: "Access", authorization: "AuthorizationServer | None") -> None:
    """Let the audit trail, if any, have what no request through the router says: refused tokens, logins, hosts."""
    if trail is None:
        return
    access.on_refusal = trail.token_refused
    if authorization is not None:
        authorization.listeners.login_refused = trail.login_refused
        authorization.listeners.host_approval = trail.host_approval


def counted(routes: "Sequence[BaseRoute]", running: "RunningRequests") -> "Sequence[BaseRoute]":
    """Return routes whose requests are counted as running: uploads and downloads, which may take long."""
    from starlette.routing import Route

    for route in routes:
        if isinstance(route, Route):
            route.app = _counted(route.app, running)
    return routes


def _counted(app: "ASGIApp", running: "RunningRequests") -> "ASGIApp":
    async def count(scope: "Scope", receive: "Receive", send: "Send") -> None:
        with running.one():
            await app(scope, receive, send)

    return count


def tool_api_routes(
    gateway: Gateway,
    settings: Settings,
    access: "Access",
    running: "RunningRequests",
    cluster: "Cluster | None",
) -> "list[BaseRoute]":
    """Return the routes of the tools for programs without MCP, if they are to be served."""
    if not settings.http.openapi:
        return []
    from gateway.serving.openapi.routes import ToolApi

    return ToolApi(
        gateway.router,
        gateway.store,
        gateway.links,
        settings.gateway.name,
        __version__,
        settings.http.max_request_bytes,
        lambda: gateway.router.profile_names,
        lambda: gateway.router.toolsets,
        gateway.router.offered.all_tools,
        running,
        settings.gateway.public_url,
        lambda: access.needs_token,
        cluster,
    ).routes()


def console_routes(console: "Console | None", access: "Access") -> "list[BaseRoute]":
    """Return the routes of the console, if it is to be served. It is open to the tokens of admins."""
    if console is None:
        return []
    from gateway.serving.console.routes import console_mounts

    async def identify(authorization: str) -> "Identified | Fault":
        # Without any tokens everybody is somebody, but not every page in a browser may see the console.
        return await access.identify(authorization) if access.needs_token else "missing"

    return console_mounts(CONSOLE_PATH, console, identify)

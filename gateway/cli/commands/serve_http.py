"""`mcp-gateway serve --http`: many hosts, over HTTP."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from gateway._version import __version__
from gateway.cli.cluster_membership import join, link_key_of, opened_cluster
from gateway.cli.commands.proxy import proxy_beside
from gateway.cli.controlled_gateway import HostFacingState, Start, controlled_gateway
from gateway.cli.exit_codes import DONE
from gateway.cli.http_addresses import console_address, login_base, origin_of, tell_of_console, tell_where
from gateway.cli.http_routes import authorization_server, console_routes, record_access, tool_api_routes
from gateway.cli.shared_hosts import HostsBeside
from gateway.config.schema import HttpSettings, Settings
from gateway.core.model.json_values import as_object
from gateway.serving.control.status_report import Serving

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from gateway.serving.cluster.cluster import Cluster
    from gateway.serving.shared.attached_hosts import AttachedHosts


def fast_over_http(settings: Settings) -> bool:
    """Whether uvloop may serve these ports.

    With TLS it may not: it reads before the handshake has begun, and what it has read is lost to `start_tls`
    (MagicStack/uvloop reads from `connection_made` on, whether paused or not).
    """
    return settings.http.tls_certificate is None


class StopRequest:
    """Asks a gateway that serves over HTTP to stop when its running requests have ended."""

    def __init__(self) -> None:
        self.drain: Callable[[], bool] | None = None

    def ask(self) -> bool:
        """Ask it; false if it does not serve yet, or has been asked before."""
        return self.drain is not None and self.drain()


async def serve_http_with(
    start: Start,
    on_console: Callable[[str], object] = tell_of_console,
    *,
    shared: bool = False,
    stop: StopRequest | None = None,
) -> int:
    """Serve over HTTP until stopped. `on_console` gets the address of the console, if it is served.

    `shared`: hosts on stdio can attach as well (`serve --shared`). `stop` can be asked to stop it gently.
    """
    from gateway.content.links.base_url import Bases
    from gateway.serving.access import Access
    from gateway.serving.content.routes import content_routes
    from gateway.serving.logins.routes import login_routes
    from gateway.serving.mcp.drain import RunningRequests
    from gateway.serving.mcp.handshake import Identity
    from gateway.serving.mcp.http import http_app
    from gateway.serving.mcp.security import check_bind
    from gateway.system.large_blocks import reuse_large_blocks
    from gateway.upstream.authorization.client_identification import client_document

    reuse_large_blocks()
    settings = start.settings
    access = Access(settings.http, settings.access, public_url=settings.gateway.public_url)
    authorization = authorization_server(settings, access)
    # Before any upstream is started.
    check_bind(settings.http, needs_token=access.needs_token, public_url=settings.gateway.public_url)
    serving = Serving(start.path, time.time(), principal="token" if settings.http.token else "local")
    reached = HostFacingState(serving)
    own = settings.gateway
    beside = HostsBeside.of(start, serving) if shared else None

    def bound(port: int) -> None:
        address = origin_of(settings, port)
        base = f"{address}{own.root_path}"
        gateway.links.serve_at(base, link_key_of(settings, cluster))
        gateway.login_desk.serve_at(partial(login_base, own.public_url, base))
        serving.transports[:0] = [f"{address}/mcp", f"{address}/sse"]
        tell_where(settings, address)
        if console is not None:
            on_console(console_address(settings, console, address))

    def applied(changed: Settings) -> None:
        reached.applied(changed)
        access.reconfigure(changed.access)
        if authorization is not None:
            authorization.reconfigure(changed)

    def refused(document: Mapping[str, Any]) -> None:
        written = as_object(document.get("access"))
        access.narrow(written)
        if authorization is not None:
            authorization.narrow(as_object(written.get("people")))

    with anyio.CancelScope() as whole:
        async with (
            nullcontext() if authorization is None else aclosing(authorization),
            opened_cluster(settings) as cluster,
            controlled_gateway(
                replace(start, on_refused=refused),
                serving,
                stop=whole.cancel,
                on_applied=applied,
                on_introduced=reached.introduced,
                over_http=True,
                came_with=access.came_with,
            ) as gateway,
            proxy_beside(gateway, settings, essential=True),
        ):
            router = gateway.router
            join(cluster, gateway, serving)
            record_access(gateway.audit, access, authorization)
            running = RunningRequests()
            console = await serving.console.console() if settings.console.enabled and serving.console else None
            app = http_app(
                router,
                settings.http,
                Identity(own.name, __version__, instructions=own.instructions, others=router.introductions),
                access=access,
                profile_names=lambda: router.profile_names,
                toolsets=lambda: router.toolsets,
                telemetry=router.telemetry,
                content=[
                    *content_routes(gateway.store, gateway.links, settings.content),
                    *tool_api_routes(gateway, settings, access, running, cluster),
                ],
                public=[
                    *login_routes(gateway.login_desk, client_document(own.public_url) if own.public_url else None),
                    *([] if authorization is None else authorization.routes()),
                    *console_routes(console, access),
                ],
                bases=Bases(own.root_path, settings.http.trusted_proxies),
                public_url=own.public_url,
                on_too_many=None if gateway.audit is None else gateway.audit.too_many_requests,
                cluster=cluster,
                requests=running,
            )
            reached.serves(app.state.downstream)
            attached = None if beside is None else partial(beside.attached, gateway)
            await _serve_on(app, settings.http, bound, attached, cluster, stop)
    return DONE


async def _serve_on(
    app: "Starlette",
    settings: HttpSettings,
    bound: Callable[[int], None],
    attached: "Callable[[], AbstractAsyncContextManager[AttachedHosts]] | None",
    cluster: "Cluster | None",
    stop: StopRequest | None,
) -> None:
    """Serve over HTTP, and the hosts that attach, if they can, from when the port is open."""
    from gateway.serving.mcp.http import serve_http

    async with AsyncExitStack() as stack:
        hosts = None if attached is None else await stack.enter_async_context(attached())
        if cluster is not None:
            await stack.enter_async_context(cluster.present())

        def on_bound(port: int) -> None:
            bound(port)
            if stop is not None:
                stop.drain = app.state.drain.ask
            if cluster is not None:
                app.state.draining.on_drain(cluster.index.freeze)  # sessions that end now go on elsewhere
                cluster.join(port)
            if hosts is not None:
                hosts.open(app.state.downstream)

        await serve_http(app, settings, on_bound=on_bound)

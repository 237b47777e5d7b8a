"""`mcp-gateway serve --http`: many hosts, over HTTP."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from gateway.cli.cluster_membership import at_their_replica, join, link_key_of, opened_cluster
from gateway.cli.commands.proxy import proxy_beside
from gateway.cli.controlled_gateway import HostFacingState, Start, controlled_gateway
from gateway.cli.experimental_parts import discovery_of, file_routes, identity_over_http
from gateway.cli.http_addresses import (
    console_address,
    login_base,
    origin_of,
    owner_over_http,
    tell_of_console,
    tell_where,
)
from gateway.cli.http_routes import authorization_server, console_routes, counted, record_access, tool_api_routes
from gateway.cli.shared_hosts import HostsBeside
from gateway.cli.stop_request import StopRequest, stop_or_end
from gateway.config.http_settings import HttpSettings
from gateway.config.schema import Settings
from gateway.core.model.json_values import as_object
from gateway.runtime import Gateway
from gateway.serving.control.status_report import Serving
from gateway.system.background_tasks import background_tasks

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from gateway.serving.access import Access
    from gateway.serving.authorization.authorization_server import AuthorizationServer
    from gateway.serving.cluster.cluster import Cluster
    from gateway.serving.shared.attached_hosts import AttachedHosts
    from gateway.serving.workers.worker import Worker
    from gateway.telemetry import Telemetry


def fast_over_http(settings: Settings) -> bool:
    """Whether uvloop may serve these ports.

    With TLS it may not: it reads before the handshake has begun, and what it has read is lost to `start_tls`
    (MagicStack/uvloop reads from `connection_made` on, whether paused or not).
    """
    return settings.http.tls_certificate is None


class _AccessChanges:
    """Applies a changed configuration to what decides on who may ask."""

    def __init__(self, access: "Access", authorization: "AuthorizationServer | None", reached: HostFacingState) -> None:
        self._access = access
        self._authorization = authorization
        self._reached = reached

    def applied(self, changed: Settings) -> None:
        """Apply changed settings."""
        self._reached.applied(changed)
        self._access.reconfigure(changed.access)
        if self._authorization is not None:
            self._authorization.reconfigure(changed)

    def refused(self, document: Mapping[str, Any]) -> None:
        """Drop whoever a document that cannot be used as a whole no longer names."""
        written = as_object(document.get("access"))
        self._access.narrow(written)
        if self._authorization is not None:
            self._authorization.narrow(as_object(written.get("people")))


def _serving(start: Start, worker: "Worker | None") -> Serving:
    owner, grace = owner_over_http(start.settings), start.settings.http.drain_grace
    folder = None if worker is None else worker.folder
    return Serving(start.path, time.time(), principal=owner, grace=grace, worker_folder=folder)


def _model_proxy(gateway: Gateway, settings: Settings, worker: "Worker | None") -> AbstractAsyncContextManager[None]:
    """Return the model proxy, to be entered: it has a port of its own, so the first worker alone serves it."""
    if worker is not None and worker.number > 1:
        return nullcontext()
    return proxy_beside(gateway, settings, essential=True)


async def serve_http_with(
    start: Start,
    on_console: Callable[[str], object] = tell_of_console,
    *,
    shared: bool = False,
    stop: StopRequest | None = None,
    worker: "Worker | None" = None,
) -> int:
    """Serve over HTTP until stopped. `on_console` gets the address of the console, if it is served.

    `shared`: hosts on stdio can attach as well (`serve --shared`). `stop` can be asked to stop it gently. `worker` is
    given in one of several processes that serve together (`serve --workers`).
    """
    from gateway.content.links.base_url import Bases
    from gateway.serving.access import Access
    from gateway.serving.content.routes import content_routes
    from gateway.serving.logins.routes import login_routes
    from gateway.serving.mcp.http import http_app
    from gateway.serving.mcp.security import check_bind
    from gateway.system.large_blocks import reuse_large_blocks
    from gateway.upstream.authorization.client_identification import client_document

    reuse_large_blocks()
    stop = stop or StopRequest()
    settings = start.settings
    access = Access(settings.http, settings.access, public_url=settings.gateway.public_url)
    authorization = authorization_server(settings, access)
    # Before any upstream is started.
    check_bind(settings.http, needs_token=access.needs_token, public_url=settings.gateway.public_url)
    serving = _serving(start, worker)
    reached = HostFacingState(serving)
    own = settings.gateway
    beside = HostsBeside.of(start, serving) if shared else None

    def bound(port: int) -> None:
        address = origin_of(settings, port)
        base = f"{address}{own.root_path}"
        gateway.links.serve_at(base, link_key_of(settings, None if worker is not None else cluster))
        gateway.login_desk.serve_at(partial(login_base, own.public_url, base))
        serving.transports[:0] = [f"{address}/mcp", f"{address}/sse"]
        if worker is None:
            tell_where(settings, address)
        if console is not None:
            on_console(console_address(settings, console, address))

    changes = _AccessChanges(access, authorization, reached)

    with anyio.CancelScope() as whole:
        async with (
            nullcontext() if authorization is None else aclosing(authorization),
            opened_cluster(settings, worker) as cluster,
            controlled_gateway(
                replace(start, on_refused=changes.refused),
                serving,
                stop=partial(stop_or_end, stop, whole),
                on_applied=changes.applied,
                on_introduced=reached.introduced,
                over_http=True,
                came_with=access.came_with,
            ) as gateway,
            _model_proxy(gateway, settings, worker),
        ):
            router = gateway.router
            join(cluster, gateway, serving)
            if cluster is not None:
                access.rates.shared = cluster.use
                if authorization is not None:
                    authorization.shared = cluster.use
            record_access(gateway.audit, access, authorization)
            running = serving.running
            document = client_document(own.public_url) if own.public_url else None
            if worker is not None:
                gateway.login_desk.on_completed = worker.report_login
            console = await serving.console.console() if settings.console.enabled and serving.console else None
            app = http_app(
                router,
                settings.http,
                identity_over_http(gateway),
                access=access,
                profile_names=lambda: router.profile_names,
                toolsets=lambda: router.toolsets,
                telemetry=router.telemetry,
                content=[
                    *counted(content_routes(gateway.store, gateway.links, settings.content), running),
                    *tool_api_routes(gateway, settings, access, running, cluster),
                ],
                public=[
                    *at_their_replica(login_routes(gateway.login_desk, document), cluster),
                    *([] if authorization is None else authorization.routes()),
                    *counted(file_routes(gateway), running),
                    *console_routes(console, access),
                ],
                bases=Bases(own.root_path, settings.http.trusted_proxies),
                public_url=own.public_url,
                on_too_many=None if gateway.audit is None else gateway.audit.too_many_requests,
                cluster=cluster,
                requests=running,
                worker=worker,
                discovery=discovery_of(settings),
            )
            if console is not None:
                app.state.draining.on_drain(console.end_streams)
            reached.serves(app.state.downstream)
            attached = None if beside is None else partial(beside.attached, gateway)
            await _serve_on(app, settings.http, bound, attached, cluster, stop, worker, router.telemetry)
    return stop.code


async def _serve_on(
    app: "Starlette",
    settings: HttpSettings,
    bound: Callable[[int], None],
    attached: "Callable[[], AbstractAsyncContextManager[AttachedHosts]] | None",
    cluster: "Cluster | None",
    stop: StopRequest,
    worker: "Worker | None",
    telemetry: "Telemetry",
) -> None:
    """Serve over HTTP, and the hosts that attach, if they can, from when the port is open."""
    from gateway.serving.mcp.http import serve_http
    from gateway.serving.workers.machine_cluster import socket_path

    async with AsyncExitStack() as stack:
        hosts = None if attached is None else await stack.enter_async_context(attached())
        if cluster is not None:
            await stack.enter_async_context(cluster.present())

        def on_bound(port: int) -> None:
            bound(port)
            stop.drain = app.state.drain.ask
            if cluster is not None:
                app.state.draining.on_drain(cluster.index.freeze)  # sessions that end now go on elsewhere
                cluster.join(port)
            if hosts is not None:
                hosts.open(app.state.downstream)
            if worker is not None:
                worker.follow()
                tasks.start_soon(worker.report, lambda: telemetry.readiness().ready)

        tasks = await stack.enter_async_context(background_tasks())
        if worker is None or cluster is None:
            return await serve_http(app, settings, on_bound=on_bound)
        private = socket_path(worker.folder, cluster.own)
        return await serve_http(app, settings, on_bound=on_bound, listener=worker.listener(), private=private)

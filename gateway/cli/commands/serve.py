"""`mcp-gateway serve`: run the gateway over stdio or HTTP."""

import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import anyio
import typer

from gateway._version import __version__
from gateway.cli.command_context import (
    CommandContext,
    ConfigFile,
    ProfileNames,
    UpstreamUrls,
    loaded_for,
    profile_option,
    run_until_signal,
    the_profile,
)
from gateway.cli.commands.proxy import proxy_beside
from gateway.cli.controlled_gateway import HostFacingState, Start, controlled_gateway
from gateway.cli.exit_codes import DONE, TERMINATED, refuse
from gateway.cli.shared_hosts import HostsBeside
from gateway.cli.terminal import remark
from gateway.cli.toolset_option import ToolsetName, reached_of, toolsets_of
from gateway.config.builtin_profiles import load_profiles
from gateway.config.schema import HttpSettings, LogFormat, LogLevel, Settings
from gateway.core.model.json_values import as_object
from gateway.core.profiles.match_profile import find_profile
from gateway.core.tools.instructions import Introductions
from gateway.runtime import Gateway
from gateway.serving.console.on_request import CONSOLE_PATH
from gateway.serving.control.status_report import Serving
from gateway.serving.shared.relay_options import RelayOptions
from gateway.system.loopback import is_loopback
from gateway.telemetry import configure_logging
from gateway.telemetry.logs import announce
from gateway.telemetry.trace_export import exporting_traces

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.routing import BaseRoute

    from gateway.routing import Router
    from gateway.serving.access import Access
    from gateway.serving.access.identified import Fault, Identified
    from gateway.serving.authorization.authorization_server import AuthorizationServer
    from gateway.serving.cluster.cluster import Cluster
    from gateway.serving.console.console import Console
    from gateway.serving.mcp.drain import RunningRequests
    from gateway.serving.mcp.early_stdio import EarlyStdio
    from gateway.serving.mcp.handshake import Identity
    from gateway.serving.mcp.server_card import Discovery
    from gateway.serving.shared.attached_hosts import AttachedHosts
    from gateway.telemetry.audit.trail import AuditTrail

logger = logging.getLogger(__name__)

_BY_HAND = """\
Waiting for a host on stdin: hosts start it themselves. Ctrl-D ends it.
You may want one of these instead:
  mcp-gateway install HOST    register the gateway in a host, which starts it
  mcp-gateway serve --http    serve hosts over HTTP
  mcp-gateway tools           list the tools that a host is offered"""
"""Printed for people who start `serve` in a terminal, where it would seem to hang."""


def serve(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND ARGS...]", help="Command of the only upstream, instead of a configuration."
        ),
    ] = None,
    config: ConfigFile = None,
    profile: Annotated[ProfileNames, profile_option("Profile for hosts that do not choose one.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME", help="Model behind the hosts, for profiles that depend on it."),
    ] = None,
    toolset: ToolsetName = None,
    upstream: UpstreamUrls = None,
    http: Annotated[bool, typer.Option("--http", help="Serve /mcp and /sse over HTTP instead of stdio.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65_535, help="Port for --http; 0 for any free one.")
    ] = None,
    bind: Annotated[str | None, typer.Option("--bind", metavar="ADDRESS", help="Address for --http.")] = None,
    console: Annotated[
        bool, typer.Option("--console", help="Serve the console too, at /console; only with --http.")
    ] = False,
    log_format: Annotated[LogFormat | None, typer.Option("--log-format", help="Format of the log on stderr.")] = None,
    log_level: Annotated[LogLevel | None, typer.Option("--log-level", help="Minimum log level.")] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Offer the tools that `calibrate` uses to measure a host.")
    ] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Share one gateway with all hosts that have this configuration.")
    ] = False,
    resident: Annotated[bool, typer.Option("--resident", hidden=True)] = False,
) -> int:
    """Serve one host over stdio, or many over HTTP."""
    if not http and (port is not None or bind is not None):
        refuse("--port and --bind need --http")
    if console and not http:
        refuse("--console needs --http; `mcp-gateway console` opens the console of any running gateway")
    if toolset is not None and http:
        refuse("--toolset is for a host on stdio; over HTTP, hosts name theirs in the path: /mcp/auto/TOOLSET")
    started: CommandContext = context.obj
    chosen = the_profile(profile)
    if shared or resident:
        judged = _SharedOptions(http, resident, bool(command or upstream), calibrate, bool(log_format or log_level))
        if (code := _served_shared(judged, started, RelayOptions(config, chosen, model, toolset))) is not None:
            return code

    def overlay(settings: Settings) -> Settings:
        changed = _with_console(
            _listening(_logging(_modelled(settings, model), log_format, log_level), port, bind), console
        )
        return reached_of(changed, toolsets, of_project)

    loaded = loaded_for(config, upstream, command)
    toolsets = () if http else toolsets_of(toolset, loaded.settings)
    of_project = next((name for name in toolsets if name != toolset), None)
    start = replace(Start.of(loaded, chosen, overlay), calibrating=calibrate)
    settings = start.settings
    configure_logging(settings, debug=started.debug)
    profiles = load_profiles(settings)
    if chosen is not None:
        find_profile(profiles, chosen)
    with exporting_traces(os.environ, settings.gateway.name):
        if http:
            stop = StopRequest()
            work = partial(serve_http_with, start, shared=shared, stop=stop)
            ended = run_until_signal(work, fast_loop=fast_over_http(settings), terminate=stop.ask)
        else:
            opening = started.opening or _opening(settings)
            opening.toolsets = toolsets
            if opening.is_by_hand:
                remark(_BY_HAND)
            ended = run_until_signal(partial(_serve_stdio, start, opening))
    return DONE if ended == TERMINATED else ended or DONE


class _SharedOptions(NamedTuple):
    """The options that decide what `--shared` means."""

    http: bool
    resident: bool
    has_upstreams: bool
    calibrates: bool
    logs_otherwise: bool


def _served_shared(options: _SharedOptions, started: CommandContext, host: RelayOptions) -> int | None:
    """Relay for a host, or be the gateway that hosts share, and return the exit code.

    Return None if this process serves as ever: over HTTP, or because nothing can be shared.
    """
    if options.has_upstreams:
        refuse("--shared needs a configuration, by which hosts find the gateway")
    if options.resident:
        from gateway.cli.commands.serve_shared import serve_resident

        return serve_resident(host.config, debug=started.debug)
    if options.http:
        return None
    if options.calibrates or options.logs_otherwise:
        refuse("--shared goes with --config, --profile, --model and --toolset; for the rest, see the configuration")
    from gateway.serving.shared.relay import relay

    opening = started.opening or _opening(Settings())
    if opening.is_by_hand:
        remark(_BY_HAND)
    return relay(opening, host)


def _listening(settings: Settings, port: int | None, bind: str | None) -> Settings:
    given = {"port": port, "bind": bind}
    return _changed(settings, "http", {key: value for key, value in given.items() if value is not None})


def _with_console(settings: Settings, console: bool) -> Settings:
    return _changed(settings, "console", {"enabled": True} if console else {})


def _modelled(settings: Settings, model: str | None) -> Settings:
    return _changed(settings, "gateway", {"model": model} if model else {})


def _logging(settings: Settings, log_format: LogFormat | None, level: LogLevel | None) -> Settings:
    given = {"format": log_format, "level": level}
    return _changed(settings, "logging", {key: value for key, value in given.items() if value is not None})


def _changed(settings: Settings, section: str, changes: Mapping[str, Any]) -> Settings:
    return settings.model_copy(update={section: getattr(settings, section).model_copy(update=changes)})


def _opening(settings: Settings) -> "EarlyStdio":
    """Open the connection if the command was not started by `main`, which opens it before anything is imported."""
    from gateway.serving.mcp.early_stdio import EarlyStdio
    from gateway.serving.mcp.handshake import Identity

    opening = EarlyStdio(Identity(settings.gateway.name, __version__, instructions=settings.gateway.instructions))
    opening.start()
    return opening


async def _serve_stdio(start: Start, opening: "EarlyStdio") -> int:
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
            loopback_pages(gateway.login_desk, partial(_callback_port, gateway)),
        ):
            yield gateway.router

    with anyio.CancelScope() as whole:
        await serve_stdio(opening, opened, on_serving=reached.serves)
    return DONE


def _authorization_server(settings: Settings, access: "Access") -> "AuthorizationServer | None":
    """Return the built-in authorization server, if there is to be one. `access` then accepts its tokens."""
    if settings.access.authorization_server is None:
        return None
    from gateway.config.find_config import state_folder
    from gateway.serving.authorization.authorization_server import opened_server

    server = opened_server(settings, state_folder(os.environ))
    access.add(server, server.issuer)
    return server


def _record(trail: "AuditTrail | None", access: "Access", authorization: "AuthorizationServer | None") -> None:
    """Let the audit trail, if any, have what no request through the router says: refused tokens, logins, hosts."""
    if trail is None:
        return
    access.on_refusal = trail.token_refused
    if authorization is not None:
        authorization.listeners.login_refused = trail.login_refused
        authorization.listeners.host_approval = trail.host_approval


def _tell_where(settings: Settings, address: str) -> None:
    where = f"listening on {address}/mcp (Streamable HTTP) and {address}/sse (HTTP+SSE)"
    for line in filter(None, (where, _reached_as(settings))):
        if settings.logging.format == "json":
            announce(logger, line)
        else:
            remark(line)


def _console_address(settings: Settings, console: "Console", address: str) -> str:
    """Return the address of the console. On this machine it lets a browser in; elsewhere a token has to."""
    if settings.logging.format == "json" or not is_loopback(settings.http.bind):
        return f"{address}{CONSOLE_PATH}"
    return f"{address}{CONSOLE_PATH}/enter?key={console.sessions.new_key()}"


def _tell_of_console(url: str) -> None:
    remark(f"console at {url}")


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
    on_console: Callable[[str], object] = _tell_of_console,
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
    from gateway.serving.mcp.http import http_app
    from gateway.serving.mcp.security import check_bind
    from gateway.system.large_blocks import reuse_large_blocks
    from gateway.upstream.authorization.client_identification import client_document

    reuse_large_blocks()
    settings = start.settings
    access = Access(settings.http, settings.access, public_url=settings.gateway.public_url)
    authorization = _authorization_server(settings, access)
    # Before any upstream is started.
    check_bind(settings.http, needs_token=access.needs_token, public_url=settings.gateway.public_url)
    serving = Serving(start.path, time.time(), principal="token" if settings.http.token else "local")
    reached = HostFacingState(serving)
    own = settings.gateway
    beside = HostsBeside.of(start, serving) if shared else None

    def bound(port: int) -> None:
        address = _origin(settings, port)
        base = f"{address}{own.root_path}"
        gateway.links.serve_at(base, _link_key(settings, cluster))
        gateway.login_desk.serve_at(partial(_place, own.public_url, base))
        serving.transports[:0] = [f"{address}/mcp", f"{address}/sse"]
        _tell_where(settings, address)
        if console is not None:
            on_console(_console_address(settings, console, address))

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
            _opened_cluster(settings) as cluster,
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
            _join(cluster, gateway, serving)
            _record(gateway.audit, access, authorization)
            running = RunningRequests()
            console = await serving.console.console() if settings.console.enabled and serving.console else None
            app = http_app(
                router,
                settings.http,
                _identity(gateway),
                access=access,
                profile_names=lambda: router.profile_names,
                toolsets=lambda: router.toolsets,
                telemetry=router.telemetry,
                content=[
                    *content_routes(gateway.store, gateway.links, settings.content),
                    *_tool_api_routes(gateway, settings, access, running, cluster),
                ],
                public=[
                    *login_routes(gateway.login_desk, client_document(own.public_url) if own.public_url else None),
                    *([] if authorization is None else authorization.routes()),
                    *_file_routes(gateway),
                    *_console_routes(console, access),
                ],
                bases=Bases(own.root_path, settings.http.trusted_proxies),
                public_url=own.public_url,
                on_too_many=None if gateway.audit is None else gateway.audit.too_many_requests,
                cluster=cluster,
                requests=running,
                discovery=_discovery(settings),
            )
            reached.serves(app.state.downstream)
            attached = None if beside is None else partial(beside.attached, gateway)
            await _serve_on(app, settings.http, bound, attached, cluster, stop)
    return DONE


def _identity(gateway: Gateway) -> "Identity":
    """Return what the gateway is for hosts over HTTP."""
    from gateway.content.links.file_transfers import METHODS
    from gateway.serving.mcp.handshake import Identity

    own, methods = gateway.settings.gateway, frozenset[str]() if gateway.transfers is None else METHODS
    others, newer = gateway.router.introductions, _newer_revisions(gateway.settings)
    return Identity(own.name, __version__, None, own.instructions, others, newer, methods)


def _file_routes(gateway: Gateway) -> "list[BaseRoute]":
    """Return the routes of files that hosts send, if they may."""
    if gateway.transfers is None:
        return []
    from gateway.serving.content.file_upload import file_routes

    return file_routes(gateway.store, gateway.transfers)


def _newer_revisions(settings: Settings) -> tuple[str, ...]:
    """Return the revisions that are served though they are only proposed."""
    from gateway.core.results.output_variants import REVISION

    return (REVISION,) if settings.experimental.result_variants else ()


def _discovery(settings: Settings) -> "Discovery | None":
    """Return the documents that say what this server is, if they are served."""
    if settings.experimental.server_card is None:
        return None
    from gateway.core.model.revisions import REVISIONS
    from gateway.serving.mcp.server_card import Discovery

    return Discovery(settings.experimental.server_card, __version__, (*REVISIONS, *_newer_revisions(settings)))


def _opened_cluster(settings: Settings) -> "AbstractAsyncContextManager[Cluster | None]":
    """Return this gateway as one of several, if it is, to be entered."""
    if settings.cluster.url is None:
        return nullcontext()
    from gateway.serving.cluster.cluster import open_cluster

    return open_cluster(settings)


def _join(cluster: "Cluster | None", gateway: Gateway, serving: Serving) -> None:
    """Let the gateway be one of several, if it is."""
    if cluster is not None:
        cluster.upstream_of = gateway.router.state_of
        cluster.observed_by(gateway.router.telemetry.metrics)
        gateway.join(cluster)
        serving.replicas = cluster.report


def _link_key(settings: Settings, cluster: "Cluster | None") -> bytes:
    """Return the key that links are signed with: replicas have one together."""
    from gateway.config.find_config import state_folder
    from gateway.content.links.links import link_key

    if cluster is not None and settings.content.key is None:
        return cluster.secret.key("links")
    return link_key(settings.content.key, state_folder(os.environ))


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


def _tool_api_routes(
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
        gateway.router.all_tools,
        running,
        settings.gateway.public_url,
        lambda: access.needs_token,
        cluster,
    ).routes()


def _console_routes(console: "Console | None", access: "Access") -> "list[BaseRoute]":
    """Return the routes of the console, if it is to be served. It is open to the tokens of admins."""
    if console is None:
        return []
    from gateway.serving.console.routes import console_mounts

    async def identify(authorization: str) -> "Identified | Fault":
        # Without any tokens everybody is somebody, but not every page in a browser may see the console.
        return await access.identify(authorization) if access.needs_token else "missing"

    return console_mounts(CONSOLE_PATH, console, identify)


def _origin(settings: Settings, port: int) -> str:
    """Return the origin that is listened on."""
    host = f"[{settings.http.bind}]" if ":" in settings.http.bind else settings.http.bind
    return f"{'http' if settings.http.tls_certificate is None else 'https'}://{host}:{port}"


def _reached_as(settings: Settings) -> str | None:
    """Say under which host names other machines may call the gateway; None if they cannot reach it."""
    from gateway.serving.mcp.security import allowed_by

    allowed = allowed_by(settings.http, settings.gateway.public_url)
    if not allowed.any_address:
        return None
    names = ", ".join(allowed.names)
    return (
        f"reached by any of its IP addresses, and as {names}; other names: [http] allowed_hosts, [gateway] public_url"
    )


def _callback_port(gateway: Gateway, upstream: str) -> int | None:
    auth = gateway.settings.upstreams[upstream].auth
    return None if auth is None else auth.callback_port


async def _place(public_url: str | None, base: str, _upstream: str) -> str:
    """Return the address to which browsers come back from a login: the public one, or that of the host's request."""
    from gateway.content.links.base_url import current_base

    return (public_url or current_base() or base).rstrip("/")

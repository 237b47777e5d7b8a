"""Serve hosts of both eras over HTTP: Streamable HTTP at /mcp and HTTP+SSE at /sse, in one ASGI application."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from gateway.config.http_settings import HttpSettings
from gateway.config.toolset_settings import ToolsetSettings
from gateway.content.links.base_url import Bases
from gateway.serving.access import Access, Identified
from gateway.serving.access.resource_metadata import resource_metadata
from gateway.serving.http import Listening, TcpListener, serve
from gateway.serving.http.limits import no_replica
from gateway.serving.http.refuse_itself import RefuseItself
from gateway.serving.mcp.admit_requests import AdmissionMiddleware, LargeBodyMiddleware
from gateway.serving.mcp.attendance import AttendanceMiddleware
from gateway.serving.mcp.cluster_port import ClusterPort
from gateway.serving.mcp.downstream import Downstream
from gateway.serving.mcp.drain import Drain, TellingOfTheEnd
from gateway.serving.mcp.drain_streams import Draining
from gateway.serving.mcp.era_headers import EraHeaderMiddleware
from gateway.serving.mcp.events import Events
from gateway.serving.mcp.handshake import Identity
from gateway.serving.mcp.health_routes import observing
from gateway.serving.mcp.http_sessions import ResumableSessions
from gateway.serving.mcp.kept_lists import KeptLists
from gateway.serving.mcp.modern_http import ModernEndpoint
from gateway.serving.mcp.next_revision import NextRevisionMiddleware
from gateway.serving.mcp.profile_choice import ProfileMiddleware, ProfileNames
from gateway.serving.mcp.request_caller import IDENTIFIED_SCOPE
from gateway.serving.mcp.running_requests import RunningRequests
from gateway.serving.mcp.scope_challenge import ScopeMiddleware
from gateway.serving.mcp.security import (
    Guard,
    OnTooMany,
    allowed_by,
    check_bind,
    for_sdk,
    lacking_scopes,
    limits_of,
    refused_response,
    tls_files,
)
from gateway.serving.mcp.server_card import Discovery, PublicDocuments, discovery_routes
from gateway.serving.mcp.service import Service
from gateway.serving.mcp.sse import MESSAGES_PATH, SseEndpoints
from gateway.serving.mcp.toolset_choice import ToolsetMiddleware, ToolsetsOf
from gateway.serving.mcp.worker_port import WorkerPort
from gateway.telemetry import Telemetry


def http_app(
    service: Service,
    settings: HttpSettings,
    identity: Identity,
    *,
    access: Access | None = None,
    profile_names: ProfileNames = (),
    toolsets: ToolsetsOf = dict[str, ToolsetSettings],
    telemetry: Telemetry | None = None,
    content: Sequence[BaseRoute] = (),
    public: Sequence[BaseRoute] = (),
    bases: Bases | None = None,
    public_url: str | None = None,
    on_too_many: OnTooMany | None = None,
    cluster: ClusterPort | None = None,
    requests: RunningRequests | None = None,
    worker: WorkerPort | None = None,
    discovery: Discovery | None = None,
) -> Starlette:
    """Return the application: `/mcp`, `/sse`, SSE's route for messages, a page at `/`.

    The first two may be followed by `/<profile>` and `/<profile>/<toolset>`; `auto` is the profile of the host.

    `access` identifies who sends a token; without it, that is `[http] token` alone. `profile_names` are the profiles
    that a path or the header `X-MCP-Profile` may choose, `toolsets` returns those of a path or `X-MCP-Toolset`.
    `telemetry` adds `/healthz`, `/readyz` and `/metrics`; `content` has the routes of stored content, `public` further
    ones that need no token. `bases` and `public_url` are the addresses at which the gateway is reached. `on_too_many`
    is called with whoever sends too many requests. `cluster` has the other replicas, if there may be any; `worker` is
    given if they are the workers of one machine. `requests` also counts what `content` answers, if that may end before
    the gateway does. `discovery` has the documents that say what this server is. The application's lifespan must be
    run.
    `app.state.draining` ends event streams and `app.state.drain` the service (see `serve_http`); `app.state.downstream`
    is the MCP server.
    """
    access = access or Access(settings)
    kept = KeptLists.of(os.environ)  # of hosts that share it on stdio
    downstream = Downstream(
        service, identity, kept, journal=None if cluster is None else cluster.journal, requests=requests
    )
    allowed = allowed_by(settings, public_url)
    security = for_sdk(allowed)
    events = Events(naming_requests=cluster is not None)
    manager = ResumableSessions(
        downstream.server,
        events,
        security_settings=security,
        max_request_body_size=settings.max_request_bytes,
        session_idle_timeout=settings.session_idle,
        new_id=None if cluster is None else cluster.new_session,
        on_end=(lambda _: None) if cluster is None else cluster.journal.closed,
    )
    streamable = ModernEndpoint(
        downstream, security, settings.max_request_bytes, manager.handle_request, cluster=cluster
    )
    admitted = AdmissionMiddleware(streamable, service.admission, settings.max_request_bytes)
    scoped = ScopeMiddleware(
        admitted, downstream.check_scopes, partial(lacking_scopes, access, public_url), settings.max_request_bytes
    )
    messages = MESSAGES_PATH if cluster is None else f"{MESSAGES_PATH}/~{cluster.own}"
    sse = SseEndpoints(downstream, security, settings.max_request_bytes, settings.max_unread_bytes, messages)
    public = (*public, *resource_metadata(access, public_url))
    bases = bases or Bases()
    described = [] if discovery is None else discovery_routes(discovery, public_url)
    for_anybody = described if discovery is not None and discovery.settings.public else []
    draining, drain = Draining(), Drain(downstream.requests, settings.drain_grace, lambda: service.waiting_lists)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with downstream.running(), manager.run(), events.expiring():
            yield

    of_era: ASGIApp = EraHeaderMiddleware(scoped)
    if identity.newer:
        of_era = NextRevisionMiddleware(of_era, settings.max_request_bytes)
    attended: ASGIApp = AttendanceMiddleware(of_era, downstream.attending)
    attended = drain.refusing_sessions(attended)
    if cluster is not None:
        attended = cluster.in_sessions(attended, manager)
        drain.before.append(cluster.draining)
        drain.meanwhile.append(cluster.leaving)
        drain.also += (service.long_calls_ended, cluster.known)  # any replica has the outcomes of calls afterwards
        drain.passed_on.append(cluster.passing)
        drain.after.append(cluster.left)

    def endpoint(path: str, app: ASGIApp, *, by_header: bool = True) -> list[BaseRoute]:
        narrowed = ToolsetMiddleware(app, toolsets, by_header=by_header)
        chosen = draining.ending_streams(ProfileMiddleware(narrowed, profile_names, by_header=by_header))
        forms = (path, f"{path}/", path + "/{profile}", path + "/{profile}/{toolset}")
        return [Route(form, chosen) for form in forms]

    observed: list[BaseRoute] = []
    if telemetry is not None:
        telemetry.metrics.sessions = lambda: downstream.announcer.connections
        observed = observing(telemetry, lambda: drain.has_begun, worker, cluster)
    app = Starlette(
        routes=[
            Route("/", partial(_front_page, identity)),
            *observed,
            *content,
            *public,
            *described,
            *endpoint("/mcp", attended),
            *endpoint("/sse", sse.stream),
            # Profile and toolset are fixed when the stream is opened: they are part of the path that the host is given.
            *endpoint(messages, sse.messages, by_header=False),
            *([] if cluster is None else endpoint(MESSAGES_PATH + "/~{replica}", cluster.to_streams, by_header=False)),
        ],
        middleware=[
            Middleware(RefuseItself),
            *([Middleware(PublicDocuments, for_anybody, bases)] if for_anybody else []),
            Middleware(TellingOfTheEnd, drain),
            *([] if cluster is None else [Middleware(cluster.recognising)]),
            Middleware(Guard, access, allowed, bases, public, public_url, on_too_many),
            Middleware(LargeBodyMiddleware, service.admission),
        ],
        exception_handlers={404: _not_found, 405: _not_allowed},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    draining.on_drain(downstream.announcer.close)
    app.state.access = access
    app.state.draining = draining
    app.state.drain = drain
    app.state.is_replica = no_replica if cluster is None else cluster.has_address
    app.state.downstream = downstream
    return app


async def serve_http(
    app: Starlette,
    settings: HttpSettings,
    *,
    on_bound: Callable[[int], None] | None = None,
    listener: TcpListener | None = None,
    private: Path | None = None,
) -> None:
    """Listen and serve until cancelled; then stop within a few seconds, even with open streams.

    If `app.state.drain` is asked for, running requests may end before, and no exception is raised.

    `on_bound` is called with the port (chosen by the system for `port = 0`) once requests are answered. Signals are
    left to the caller. `listener`, which they share, and `private` are those of one worker of several. Raises
    `ConfigError` if the address cannot be bound, or may not be used (`check_bind`).
    """
    check_bind(settings, needs_token=app.state.access.needs_token)
    limits = replace(limits_of(settings), is_replica=app.state.is_replica)
    listening = Listening(
        *(settings.bind, settings.port, "http.port", limits, tls_files(settings), listener, private),
        is_shared=listener is not None,
    )
    await serve(app, listening, on_bound=on_bound, on_stop=app.state.draining.begin, until=app.state.drain.over)


_TOOL_API = "/openapi.json   each tool as POST /tools/<name>, for programs without MCP\n"


def _has(request: Request, path: str) -> bool:
    return any(getattr(route, "path", None) == path for route in request.app.routes)


def _front_page(identity: Identity, request: Request) -> Response:
    found = request.scope.get(IDENTIFIED_SCOPE)
    with_token = f", with the token {found.token}" if isinstance(found, Identified) and found.token else ""
    who = f"\nyou are {found.principal}{with_token}\n" if isinstance(found, Identified) else ""
    return PlainTextResponse(
        f"{identity.title or identity.name} {identity.version}\n\n"
        "/mcp            Streamable HTTP, every protocol revision\n"
        "/sse            HTTP+SSE, for hosts of revision 2024-11-05\n"
        "/mcp/<profile>, /sse/<profile>   the same, with a host profile chosen explicitly\n"
        "/mcp/<profile>/<toolset>         the same, with a toolset; the profile auto is that of the host\n"
        "/content        stored content: POST takes it in, signed links hand it out\n"
        f"{_TOOL_API if _has(request, '/openapi.json') else ''}"
        f"{who}"
    )


def _not_found(_: Request, __: Exception) -> Response:
    return refused_response(404, "not found; the endpoints are /mcp and /sse")


def _not_allowed(_: Request, error: Exception) -> Response:
    headers = error.headers if isinstance(error, HTTPException) else None
    return refused_response(405, "this method is not allowed here", headers)

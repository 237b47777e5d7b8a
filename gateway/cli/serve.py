"""`mcp-gateway serve`: the gateway itself, over stdio or HTTP."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from gateway import __version__
from gateway.cli.failing import DONE, TERMINATED, refuse
from gateway.cli.started import ConfigFile, Started, UpstreamUrls, run_until_signal, settings_for
from gateway.cli.terminal import remark
from gateway.config.builtin_profiles import load_profiles
from gateway.config.schema import Settings
from gateway.core.matching import find
from gateway.runtime import open_gateway

if TYPE_CHECKING:
    from gateway.downstream.opening import Opening


def serve(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND ARGS...]", help="An upstream's program, in place of a configuration."),
    ] = None,
    config: ConfigFile = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="The profile of every host that chooses none.")
    ] = None,
    upstream: UpstreamUrls = None,
    http: Annotated[bool, typer.Option("--http", help="Serve /mcp and /sse over HTTP, in place of stdio.")] = False,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65_535, help="With --http; 0: any.")] = None,
    bind: Annotated[str | None, typer.Option("--bind", metavar="ADDRESS", help="With --http.")] = None,
) -> int:
    """Serve one host over stdio, or many over HTTP."""
    if not http and (port is not None or bind is not None):
        refuse("--port and --bind need --http")
    settings = settings_for(config, upstream, command)
    profiles = load_profiles(settings)
    if profile is not None:
        find(profiles, profile)
    if http:
        settings = _listening(settings, port, bind)
        ended = run_until_signal(partial(_serve_http, settings, profile, tuple(profiles)), fast_loop=True)
    else:
        started: Started = context.obj
        ended = run_until_signal(partial(_serve_stdio, settings, profile, started.opening or _opening(settings)))
    return DONE if ended == TERMINATED else ended or DONE


def _listening(settings: Settings, port: int | None, bind: str | None) -> Settings:
    given = {"port": port, "bind": bind}
    changes = {key: value for key, value in given.items() if value is not None}
    return settings.model_copy(update={"http": settings.http.model_copy(update=changes)})


def _opening(settings: Settings) -> "Opening":
    """For whoever calls the command without `main`, which opens the connection before anything is imported."""
    from gateway.downstream.handshake import Identity
    from gateway.downstream.opening import Opening

    opening = Opening(Identity(settings.gateway.name, __version__, instructions=settings.gateway.instructions))
    opening.start()
    return opening


async def _serve_stdio(settings: Settings, profile: str | None, opening: "Opening") -> int:
    from gateway.downstream.stdio import serve_stdio

    await serve_stdio(opening, partial(open_gateway, settings, profile=profile))
    return DONE


async def _serve_http(settings: Settings, profile: str | None, names: tuple[str, ...]) -> int:
    from gateway.downstream.handshake import Identity
    from gateway.downstream.http import http_app, serve_http
    from gateway.downstream.security import check_bind

    check_bind(settings.http)  # before any upstream is started
    identity = Identity(settings.gateway.name, __version__, instructions=settings.gateway.instructions)
    host = f"[{settings.http.bind}]" if ":" in settings.http.bind else settings.http.bind

    def bound(port: int) -> None:
        remark(f"listening on http://{host}:{port}/mcp (Streamable HTTP) and http://{host}:{port}/sse (HTTP+SSE)")

    async with open_gateway(settings, profile=profile) as router:
        app = http_app(router, settings.http, identity, profile_names=names)
        await serve_http(app, settings.http, on_bound=bound)
    return DONE

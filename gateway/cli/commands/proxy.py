"""`mcp-gateway proxy`: run the model proxy on its own; also used to run it beside `serve`."""

import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from gateway.cli.command_context import (
    CommandContext,
    ConfigFile,
    ProfileNames,
    profile_option,
    run_until_signal,
    settings_if_any,
    the_profile,
)
from gateway.cli.exit_codes import DONE, TERMINATED
from gateway.cli.terminal import remark
from gateway.config.model_proxy_settings import ModelProxySettings
from gateway.config.schema import Settings
from gateway.errors import ConfigError, GatewayError, InvalidRequest
from gateway.telemetry import configure_logging
from gateway.telemetry.logs import announce

if TYPE_CHECKING:
    from gateway.runtime import Gateway

logger = logging.getLogger(__name__)


def proxy(
    context: typer.Context,
    to: Annotated[str | None, typer.Option("--to", metavar="URL", help="Base URL of the model API.")] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65_535, help="Port; 0 for any free one.")] = None,
    bind: Annotated[str | None, typer.Option("--bind", metavar="ADDRESS", help="Address to listen on.")] = None,
    profile: Annotated[ProfileNames, profile_option("Model profile; docs/models lists them.", completion=None)] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print each repair to stderr, before and after, and what needed none.")
    ] = False,
    config: ConfigFile = None,
) -> int:
    """Run in front of a model API, and move the media in tool results to where the model sees it."""
    started: CommandContext = context.obj
    settings = settings_if_any(config, serves=True).settings
    given = {"to": to, "port": port, "bind": bind, "profile": the_profile(profile)}
    changes = {key: value for key, value in given.items() if value is not None}
    settings = settings.model_copy(update={"model_proxy": _changed(settings.model_proxy, changes)})
    configure_logging(settings, debug=started.debug)
    ended = run_until_signal(partial(_serve, settings, explain=explain), fast_loop=True)
    return DONE if ended == TERMINATED else ended or DONE


def _changed(settings: ModelProxySettings, changes: Mapping[str, object]) -> ModelProxySettings:
    from pydantic import ValidationError

    try:
        return ModelProxySettings.model_validate({**settings.model_dump(), **changes})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(first["msg"].removeprefix("Value error, "), where=f"model_proxy.{first['loc'][0]}") from None


async def _serve(settings: Settings, *, explain: bool) -> int:
    from gateway.content.describe import open_describer
    from gateway.content.media import MediaWorkers
    from gateway.content.shaping.effect_cache import RememberingMedia
    from gateway.content.shaping.repair_request import RepairedRequest, Repairer
    from gateway.content.store import open_store
    from gateway.serving.model_proxy import check_proxy_bind, serve_model_proxy
    from gateway.serving.model_proxy.explain_repair import explanation

    proxied = settings.model_proxy
    if proxied.to is None:
        raise ConfigError("no model API is given", where="model_proxy.to", remedy="give --to URL")
    check_proxy_bind(proxied)
    async with (
        open_store(settings.store) as store,
        MediaWorkers(settings.media) as media,
        open_describer(settings.describe, media, _no_tool) as describer,
    ):
        repairer = Repairer(store, RememberingMedia(media), proxied.history, describer)

        def say(repaired: RepairedRequest) -> None:
            remark(explanation(repaired))

        await serve_model_proxy(proxied, repairer, explain=say if explain else None, on_bound=_announcing(settings))
    return DONE


async def _no_tool(upstream: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    raise InvalidRequest("there are no upstreams here", remedy="run the proxy with `mcp-gateway serve`")


@asynccontextmanager
async def proxy_beside(gateway: "Gateway", settings: Settings, *, essential: bool) -> AsyncGenerator[None]:
    """Context manager that runs the proxy beside the gateway, with its store, if [model_proxy] `to` is set.

    Unless `essential`, a port that another gateway uses is only logged: hosts on stdio may start many gateways.
    """
    if settings.model_proxy.to is None:
        yield
        return
    from gateway.serving.model_proxy import serve_model_proxy

    # Content that needs a token under [http] is only for callers from whom the proxy requires one, too.
    owner = "token" if essential and settings.http.token and settings.model_proxy.token else "local"

    async def run() -> None:
        try:
            await serve_model_proxy(
                settings.model_proxy,
                gateway.repairer(),
                owner=owner,
                on_bound=_announcing(settings, beside=essential),
                check_size=gateway.router.admission.check_size,
            )
        except GatewayError as error:
            if essential:
                raise
            logger.warning("no model proxy: %s", error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        yield
        tasks.cancel_scope.cancel()


def _announcing(settings: Settings, *, beside: bool = False) -> Callable[[int], None]:
    from gateway.serving.model_proxy import base_urls

    def bound(port: int) -> None:
        urls = base_urls(settings.model_proxy, port)
        lines = [f"model proxy before {settings.model_proxy.to}; base urls for clients:"]
        clients = {url: [api for api, its in urls.items() if its == url] for url in urls.values()}
        lines += [f"  {url}  {', '.join(apis)}" for url, apis in clients.items()]
        if beside and (settings.access.tokens or settings.access.issuers):
            lines += ["  it restores no content of callers with an access token of their own: see docs/proxy.md"]
        if settings.logging.format == "json":
            announce(logger, " ".join(" ".join(line.split()) for line in lines))
        else:
            remark("\n".join(lines))

    return bound

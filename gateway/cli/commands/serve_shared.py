"""The process of a shared gateway, to which the hosts of `serve --shared` attach."""

import os
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio

from gateway._version import __version__
from gateway.cli.command_context import loaded_for, run_until_signal
from gateway.cli.commands.proxy import proxy_beside
from gateway.cli.commands.serve_stdio import callback_port
from gateway.cli.controlled_gateway import HostFacingState, Start, controlled_gateway
from gateway.cli.exit_codes import DONE
from gateway.cli.load_for_host import refusal_logged
from gateway.cli.shared_hosts import HostsBeside
from gateway.config.builtin_profiles import load_profiles
from gateway.core.model.caller import Caller
from gateway.core.profiles.match_profile import find_profile
from gateway.errors import ConfigError, GatewayError
from gateway.serving.control.status_report import Serving
from gateway.system.gateway_chain import join_chain
from gateway.telemetry import configure_logging
from gateway.telemetry.trace_export import exporting_traces


def serve_resident(config: Path | None, *, debug: bool) -> int:
    """Serve the hosts that attach, until the last one has left. A relay has started this process.

    Raises:
        ConfigError: the configuration is invalid, or its profile does not exist.
        GatewayError: another process is this configuration's shared gateway.
    """
    from gateway.serving.shared.attached_hosts import introduced_host
    from gateway.serving.shared.start_gateway import SharedGateway, read_introduction

    first = introduced_host(read_introduction())
    try:
        start = Start.of(loaded_for(config, None), None, lambda settings: settings)
    except ConfigError as error:
        if config is not None:
            with refusal_logged(config, str(error), on_stderr=False):
                pass  # the relay says it too, to its host
        raise
    assert start.path is not None
    join_chain(start.path, os.environ)
    settings = start.settings
    configure_logging(settings, debug=debug)
    profiles = load_profiles(settings)
    if first is not None and first.profile is not None:
        find_profile(profiles, first.profile)
    shared = SharedGateway.of(start.path, os.environ)
    with ExitStack() as alive:
        try:
            alive.enter_context(shared.alive())
        except TimeoutError:
            raise GatewayError("another shared gateway with this configuration is running, or does not end") from None
        with exporting_traces(os.environ, settings.gateway.name):
            return run_until_signal(partial(_serve_attached, start, shared.key, first), fast_loop=True)


async def _serve_attached(start: Start, key: str, first: Caller | None) -> int:
    from gateway.serving.logins.loopback import loopback_pages
    from gateway.serving.mcp.downstream import Downstream
    from gateway.serving.mcp.handshake import Identity
    from gateway.serving.mcp.kept_lists import KeptLists
    from gateway.serving.shared.start_gateway import say_ready

    settings = start.settings
    reachable, problems = anyio.Event(), list[str]()

    def on_reachable(problem: str | None) -> None:
        problems.extend(filter(None, [problem]))
        reachable.set()

    serving = Serving(start.path, time.time(), on_reachable=on_reachable)
    beside = HostsBeside(key, serving, settings)
    reached = HostFacingState(serving)
    with anyio.CancelScope() as whole:
        async with (
            controlled_gateway(
                start,
                serving,
                stop=whole.cancel,
                on_applied=reached.applied,
                on_introduced=reached.introduced,
                expected=lambda: beside.hosts.sole(first),
            ) as gateway,
            proxy_beside(gateway, settings, essential=False),
            loopback_pages(gateway.login_desk, partial(callback_port, gateway)),
        ):
            own, others = settings.gateway, gateway.router.introductions
            identity = Identity(own.name, __version__, instructions=own.instructions, others=others)
            downstream = Downstream(gateway.router, identity, KeptLists.of(os.environ))
            reached.serves(downstream)
            async with downstream.running(), beside.attached(gateway) as hosts:
                hosts.open(downstream)
                await reachable.wait()
                if problems:
                    raise GatewayError(f"hosts cannot reach the shared gateway: {problems[0]}")
                say_ready()
                await hosts.deserted()
    return DONE

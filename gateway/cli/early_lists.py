"""Prepare the lists for hosts in whose files the gateway is registered: their first start has them at once.

A host that gives up after some seconds (`claude mcp list`) would otherwise never be given a list on a slow machine:
only one that was given its list once gets it early the next time.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from gateway._version import __version__
from gateway.cli.main import relay_options, starts_stdio
from gateway.config.builtin_profiles import load_profiles
from gateway.config.find_config import cache_folder, find_file
from gateway.config.list_facts import read_list_facts
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.errors import GatewayError
from gateway.hosts.config_files.host_format import HostFormat
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.launch_command import Launch, launch_in
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.registration_status import registration_status

_SERVE = "serve"
_SHARED = "--shared"


async def prepare_for_hosts(config: Path | None) -> None:
    """Prepare the lists of each registered host that starts the gateway with this configuration.

    Nothing is started for that. Hosts get none while an upstream is unknown, nor where their lists depend on more than
    is known of them: with toolsets, and with approvals in two steps. A host for which it is not possible is left out.
    """
    path = find_file(config, environ=os.environ)
    if path is None or cache_folder(os.environ) is None:
        return
    settings = load_settings(config).settings
    if settings.toolsets or settings.policy.approval == "two-step" or not _knows_all(settings):
        return
    for host, launch in _registrations():
        try:
            await _prepare(host, launch, path, settings)
        except GatewayError:  # the host is told when it starts the gateway
            continue


def _knows_all(settings: Settings) -> bool:
    """Whether the lists of every upstream are known from a start before."""
    from gateway.upstream import Catalogues

    cache = cache_folder(os.environ)
    if cache is None:
        return False
    catalogues = Catalogues(cache / "catalogues")
    return all(catalogues.recall(one) is not None for one in settings.upstreams.values() if one.enabled)


def _registrations() -> Iterator[tuple[HostFormat, Launch]]:
    at = Machine.here()
    for host in HOSTS.values():
        for entry in registration_status(host, at).own.values():
            if (launch := launch_in(entry)) is not None:
                yield host, launch


async def _prepare(host: HostFormat, launch: Launch, path: Path, settings: Settings) -> None:
    from gateway.runtime import run_gateway
    from gateway.serving.mcp.handshake import Identity
    from gateway.serving.mcp.kept_lists import KeptLists
    from gateway.serving.mcp.prepare_lists import prepare_lists

    environ = {**os.environ, **launch.env}
    words = launch.args[launch.args.index(_SERVE) :] if _SERVE in launch.args else ()
    # These options are all that `install` writes, except that of a toolset.
    options = relay_options(words if _SHARED in words else [*words, _SHARED]) if starts_stdio(words) else None
    kept = KeptLists.of(environ)
    if options is None or options.toolset is not None or options.model is not None or kept is None:
        return
    if not _is_same(find_file(options.config, environ=environ), path):
        return
    async with run_gateway(settings, profile=options.profile, asleep=True) as gateway:
        facts = read_list_facts(options.config, environ, words)
        if facts is not None:
            identity = Identity(settings.gateway.name, __version__, instructions=settings.gateway.instructions)
            await prepare_lists(gateway.router, identity, kept, facts.digest, _client_names(host, settings))


def _is_same(started: Path | None, path: Path) -> bool:
    return started is not None and started.absolute() == path.absolute()


def _client_names(host: HostFormat, settings: Settings) -> list[str]:
    """Return the names by which the host's client is known, as it sends them."""
    profile = load_profiles(settings).get(host.profile or host.name)
    found = [one.client_name for one in profile.match] if profile is not None else []
    return [name for name in dict.fromkeys(found) if name is not None and not set(name) & set("*?[")]

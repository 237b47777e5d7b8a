"""Check a recording: what the models of simulated hosts would have seen of the calls in it. Nothing is started."""

import glob
from collections.abc import Sequence
from dataclasses import replace

from gateway.cli.diagnosis.checkup import CheckOptions, Checkup
from gateway.cli.diagnosis.selection import matches
from gateway.cli.diagnosis.server_check import Say, check_server
from gateway.cli.known_upstream import only_upstream
from gateway.config.schema import Settings
from gateway.core.fact_words import plain
from gateway.errors import ConfigError
from gateway.upstream.recording.recorded_calls import arguments_by_tool
from gateway.upstream.recording.replayed_settings import ReplayOptions, replayed_settings


async def check_recording(
    settings: Settings, options: ReplayOptions, server: str | None, wanted: CheckOptions, say: Say
) -> Sequence[Checkup]:
    """Repeat the recorded calls of one upstream, or of each, and check what came of them.

    Raises:
        ConfigError: the recording cannot be used, or has no such upstream or no call.
        UpstreamUnavailable: it could not be connected to when it was recorded.
    """
    replayed = replayed_settings(settings, options).settings
    names = [server] if server is not None else list(replayed.upstreams)
    checked: list[Checkup] = []
    for name in names:
        only = only_upstream(replayed, name, where=str(options.folder))
        given = arguments_by_tool(options.folder, name)
        chosen = {tool: calls for tool, calls in given.items() if matches(tool, wanted.only)}
        if not chosen:
            say(f"{plain(name, 80)}: no calls to check in the recording")
            continue
        tools = tuple(glob.escape(tool) for tool in chosen)
        checked.append(await check_server(only, replace(wanted, given=chosen, only=tools, pages=False), say))
    if not checked:
        raise ConfigError("has no calls to check", where=str(options.folder))
    return checked

"""Settings in which a recording answers in place of the upstreams."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gateway.config.schema import Settings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.upstream.recording.read_recording import read_recording
from gateway.upstream.recording.replay import Match

_KEPT = frozenset(
    {
        *("timeout", "limits", "tools", "session", "session_idle", "max_sessions", "files", "accept", "read_only"),
        *("enabled", "max_message_bytes"),
    }
)
"""Settings of an upstream that hold for its recording too. The others say how it is started and reached."""


class ReplayOptions(NamedTuple):
    """The recording to answer from, and which arguments are answered."""

    folder: Path
    match: Match = "strict"


class ReplayedSettings(NamedTuple):
    """Settings without any server, and the upstreams of the configuration that are left out: they were not recorded."""

    settings: Settings
    left_out: tuple[str, ...]


def replayed_settings(settings: Settings, options: ReplayOptions) -> ReplayedSettings:
    """Return the settings with the recorded upstreams only, all answered from the recording. Nothing is started.

    Raises:
        ConfigError: there is no recording, or it cannot be used.
    """
    recorded = read_recording(options.folder)
    names = [*(name for name in settings.upstreams if name in recorded)]
    names += [name for name in recorded if name not in names]
    upstreams = {name: _replayed(settings.upstreams.get(name), options) for name in names}
    left_out = tuple(name for name in settings.upstreams if name not in recorded)
    return ReplayedSettings(settings.model_copy(update={"upstreams": upstreams}), left_out)


def _replayed(configured: UpstreamSettings | None, options: ReplayOptions) -> UpstreamSettings:
    replayed = UpstreamSettings(replay=options.folder, replay_match=options.match)
    kept: Mapping[str, Any] = {} if configured is None else {key: getattr(configured, key) for key in _KEPT}
    return replayed.model_copy(update={"pins": "off", **kept})

"""The options `--record` and `--replay` of `serve`."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gateway.cli.command_context import loaded_for, settings_if_any
from gateway.cli.exit_codes import refuse
from gateway.config.load_settings import LoadedSettings
from gateway.config.schema import Settings
from gateway.core.model.quantities import parse_bytes
from gateway.telemetry.logs import announce

if TYPE_CHECKING:
    from gateway.upstream.recording.recorder import RecordOptions
    from gateway.upstream.recording.replayed_settings import ReplayOptions

logger = logging.getLogger(__name__)

RecordFolder = Annotated[
    Path | None,
    typer.Option("--record", metavar="DIR", help="Record what the upstreams answer in this folder, without secrets."),
]
RecordLimit = Annotated[
    str | None,
    typer.Option("--record-limit", metavar="SIZE", help="Size at which recording ends; by default 1GiB."),
]
ReplayFolder = Annotated[
    Path | None,
    typer.Option("--replay", metavar="DIR", help="Answer from this recording; no upstream is started."),
]
ReplayMatch = Annotated[
    str | None,
    typer.Option(
        "--replay-match",
        metavar="strict|nearest",
        autocompletion=lambda: ["strict", "nearest"],
        help="Whether other arguments than recorded ones are refused, or answered with the nearest.",
    ),
]


class Recording(NamedTuple):
    """Where to record, and the recording to answer from: at most one of them is set."""

    record: "RecordOptions | None" = None
    replay: "ReplayOptions | None" = None

    def loaded(self, config: Path | None, urls: list[str] | None, command: list[str] | None) -> LoadedSettings:
        """Load the settings. A recording needs none, and replaces upstreams that are named on the command line."""
        if self.replay is None:
            return loaded_for(config, urls, command)
        if urls or command:
            refuse("--replay answers in place of upstreams, so name none")
        return settings_if_any(config, serves=True)

    def replayed(self, settings: Settings) -> Settings:
        """Return the settings with the recording in place of the upstreams, if one is to answer."""
        if self.replay is None:
            return settings
        from gateway.upstream.recording.replayed_settings import replayed_settings

        return replayed_settings(settings, self.replay).settings

    def say(self, settings: Settings) -> None:
        """Say at the start that a recording answers; `settings` are those of the configuration."""
        if self.replay is None:
            return
        from gateway.upstream.recording.replayed_settings import replayed_settings

        left_out = replayed_settings(settings, self.replay).left_out
        without = f"; not recorded, so left out: {', '.join(left_out)}" if left_out else ""
        announce(logger, f"answering from the recording {self.replay.folder}; no upstream is started{without}")


def recording_options(
    record: Path | None, limit: str | None, replay: Path | None, match: str | None, *, shared: bool
) -> Recording:
    """Return what the options mean; exit with an error if they contradict each other.

    `shared`: another process serves the hosts, which does not know the options.
    """
    if record is not None and replay is not None:
        refuse("give either --record or --replay: a replay has nothing new to record")
    if limit is not None and record is None:
        refuse("--record-limit needs --record")
    if match is not None and replay is None:
        refuse("--replay-match needs --replay")
    if shared and (record is not None or replay is not None):
        refuse("--record and --replay need a gateway of this host alone, or --http: leave out --shared")
    return Recording(
        None if record is None else _record_options(record, limit),
        None if replay is None else replay_options(replay, match),
    )


def replay_options(folder: Path, match: str | None = None) -> "ReplayOptions":
    """Return the options of a replay; exit with an error if there is no such way to match."""
    from gateway.upstream.recording.replayed_settings import ReplayOptions

    if match not in (None, "strict", "nearest"):
        refuse(f"--replay-match is strict or nearest, not {match!r}")
    return ReplayOptions(folder.absolute(), "nearest" if match == "nearest" else "strict")


def _record_options(folder: Path, limit: str | None) -> "RecordOptions":
    from gateway.upstream.recording.recorder import RecordOptions

    if limit is None:
        return RecordOptions(folder.absolute())
    try:
        size = int(parse_bytes(limit))
    except ValueError as error:
        refuse(f"--record-limit {limit!r} {error}")
    if size <= 0:
        refuse("--record-limit must be more than 0")
    return RecordOptions(folder.absolute(), size)

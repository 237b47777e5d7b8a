"""`mcp-gateway calibrate`: ask a host's model what it sees, and save the findings as a profile."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.calibration_file import check_export, export_calibration
from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.exit_codes import DONE, FAILED, complain
from gateway.cli.running_gateways import Name, Pid
from gateway.cli.terminal import remark, say, say_json
from gateway.config.builtin_profiles import builtin_profiles
from gateway.core.fact_words import plain
from gateway.core.near_names import did_you_mean
from gateway.core.profiles.calibrate_profile import REPORT_TOOL, SHOW_TOOL
from gateway.core.profiles.match_profile import known_name
from gateway.errors import GatewayError
from gateway.routing.calibration.wording import WHY_NOT_USED
from gateway.serving.control.client import ask
from gateway.serving.control.pending_calibration import save_pending_calibration
from gateway.serving.control.records import GatewayRecord, running
from gateway.system.runtime_dir import own_folder

_EVERY_SECONDS = 1.0

_WHAT_TO_DO = f"""Calibrating. In your host, which has to use this gateway, write to the model:

    Please calibrate the gateway.

It calls {SHOW_TOOL} and {REPORT_TOOL} in turns, ten to fourteen times:
allow both for this conversation. Where something was not seen, it asks for one more message: answer "go on".
If it does not know these tools, restart the host, or have it read its tools again. Ctrl-C ends it.
"""


def calibrate(
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="NAME", help="Only the host with this profile or clientInfo name (or glob)."),
    ] = None,
    pid: Pid = None,
    name: Name = None,
    config: ConfigFile = None,
    minutes: Annotated[float, typer.Option("--minutes", min=0.01, max=1_000, help="Minutes to wait for a host.")] = 30,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Also write what was read to a new file, to be sent in."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Write the file without asking.")] = False,
    as_json: AsJson = False,
) -> int:
    """Measure what a host really shows its model, with codes that the model can report only if it sees them.

    The findings become a profile of your own for this host, its version and its model, which is used from then on.
    """
    if export is not None:
        check_export(export, yes=yes)
    until = time.time() + 60 * minutes
    request = _CalibrationRequest(until, host, pid, name, str(config.absolute()) if config is not None else None)
    pending = _left(until, host)
    remark(_WHAT_TO_DO)
    if host is not None and not _is_known(host):
        near = did_you_mean(host, list(builtin_profiles()))
        unknown = f"no profile is called {plain(host, 100)!r}{f' ({near})' if near else ''}"
        remark(f"note: {unknown}: only a host that calls itself so is calibrated")
    try:
        ended = _awaited(request)
    finally:
        with suppress(OSError):  # the request expires by itself
            pending.unlink(missing_ok=True)
        request.close()
    if as_json:
        say_json({"host": ended})
    if ended is None:
        complain(f"no host was calibrated within {minutes:g} {'minute' if minutes == 1 else 'minutes'}")
        return FAILED
    if ended["problem"]:
        complain(f"{_named(ended)} was not calibrated: {plain(str(ended['problem']), 1_000)}")
        return FAILED
    if not as_json:
        for line in _summary(ended):
            say(line)
    if export is not None and export_calibration(ended, export, yes=yes):
        remark(f"{export} is written; nothing is sent: attach it to an issue of the project")
    return DONE


@dataclass
class _CalibrationRequest:
    """A request to calibrate, and the running gateways that it is for."""

    until: float
    host: str | None
    pid: int | None
    name: str | None
    config: str | None
    _asked: dict[int, GatewayRecord] = field(default_factory=dict[int, GatewayRecord])

    def progress(self) -> Iterator[Mapping[str, Any]]:
        """The progress of each host of each gateway. A gateway that cannot be reached now is asked again."""
        for record in running():
            if self._fits(record):
                self._asked[record.pid] = record
                with suppress(GatewayError):
                    yield from ask(record, "calibrate", until=self.until, host=self.host)["hosts"]

    def close(self) -> None:
        """End the request, so that the tools are no longer offered."""
        for record in self._asked.values():
            with suppress(GatewayError):
                ask(record, "calibrate", close=True)

    def _fits(self, record: GatewayRecord) -> bool:
        wanted = ((self.pid, record.pid), (self.name, record.name), (self.config, record.config))
        return all(one in (None, other) for one, other in wanted)


def _is_known(host: str) -> bool:
    """Whether a name is that of a profile, or a glob; it may also be one that only a host knows of itself."""
    return any(char in host for char in "*?[") or known_name(builtin_profiles(), host) is not None


def _left(until: float, host: str | None) -> Path:
    try:
        return save_pending_calibration(own_folder(), until, host)
    except OSError as error:
        raise GatewayError(f"running gateways cannot be found: {error.strerror or error}") from None


def _awaited(request: _CalibrationRequest) -> Mapping[str, Any] | None:
    """Wait for the first host that has finished; None if none does in time."""
    told: dict[str, str] = {}
    while time.time() < request.until:
        for host in request.progress():
            line = _line(host)
            if told.get(_named(host)) != line:
                told[_named(host)] = line
                remark(f"{_named(host)}: {line}")
            if host["phase"] == "over":
                return host
        time.sleep(min(_EVERY_SECONDS, max(0.0, request.until - time.time())))
    return None


def _line(host: Mapping[str, Any]) -> str:
    if host["phase"] == "waiting":
        return "all parts are reported; now it needs one more message of yours (go on)"
    if host["phase"] == "saving":
        return "all is reported; its profile is being saved"
    return f"{host['reported']} of {host['parts']} parts are reported"


def _named(host: Mapping[str, Any]) -> str:
    return plain(f"{host['name'] or 'a host without a name'} {host['version'] or ''}", 200)


def _summary(host: Mapping[str, Any]) -> Sequence[str]:
    place = Path(str(host["place"]))
    return (
        f"{_named(host)} is calibrated: profile {host['profile']}, which extends {host['extends']}, in {place}",
        *(f"  read: {plain(str(words), 300)}" for words in host["learned"]),
        *(() if host["used"] else (f"Choose it with --profile or gateway.profile: {WHY_NOT_USED}",)),
        f"All of it: mcp-gateway profiles show {host['profile']}",
    )

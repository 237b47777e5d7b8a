"""Select the running gateway for a command: the only one, or the one that is named."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.terminal import remark
from gateway.errors import ConfigError, GatewayError
from gateway.serving.control.log_file import left_logs
from gateway.serving.control.records import GatewayRecord, running
from gateway.system.runtime_dir import passed_over

Pid = Annotated[int | None, typer.Option("--pid", metavar="PID", help="Process id of the gateway.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the gateway ([gateway] name).")]
_NO_GATEWAY = "a host starts one, or you do: mcp-gateway serve --http"
_LAST_LOG = "`mcp-gateway logs` shows the last one"
All = Annotated[bool, typer.Option("--all", help="All running gateways.")]


def matching(pid: int | None, name: str | None) -> list[GatewayRecord]:
    """Return this user's running gateways that match.

    Raises:
        GatewayError: no gateway matches.
    """
    tell_folder()
    there = running()
    found = [record for record in there if pid in (None, record.pid) and name in (None, record.name)]
    if found:
        return found
    if there:
        wanted = f"with the id {pid}" if pid is not None else f"called {name!r}"
        raise GatewayError(f"no running gateway {wanted}", remedy=f"there are: {_listed(there)}")
    raise GatewayError("no gateway is running", remedy="; ".join([_NO_GATEWAY, *([_LAST_LOG] if left_logs() else [])]))


def tell_folder() -> None:
    """Say on stderr if gateways are not looked for where the environment says."""
    if (unused := passed_over()) is not None:
        remark(f"note: {unused}")


def the_one(pid: int | None, name: str | None) -> GatewayRecord:
    """Return the only gateway that matches. Raises ConfigError if several do."""
    return only(matching(pid, name))


def with_file(file: Path) -> list[GatewayRecord]:
    """Return this user's running gateways with this configuration."""
    return [record for record in running() if is_same(file, record.config)]


def is_same(file: Path, config: str | None) -> bool:
    """Whether a gateway's configuration, as its record or log names it, is this file."""
    return config is not None and Path(config).resolve() == file.resolve()


def only(found: Sequence[GatewayRecord]) -> GatewayRecord:
    """Return the only one of these gateways, at least one. Raises ConfigError if there are several."""
    if len(found) > 1:
        raise ConfigError(f"{len(found)} gateways are running", remedy=f"choose one with --pid: {_listed(found)}")
    return found[0]


def chosen(pid: int | None, name: str | None, everyone: bool) -> Sequence[GatewayRecord]:
    """Return all gateways that match if `everyone` is true (`--all`), or else the only one."""
    return matching(pid, name) if everyone else [the_one(pid, name)]


def _listed(records: Sequence[GatewayRecord]) -> str:
    return ", ".join(
        f"{record.pid} ({record.name}, {record.config or 'no file'}, "
        f"for {since(datetime.fromtimestamp(record.started, UTC).isoformat())})"
        for record in records
    )


def since(moment: str) -> str:
    """Format the time since a moment of a report in one unit: `5 min`."""
    seconds = max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"

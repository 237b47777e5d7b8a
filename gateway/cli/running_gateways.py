"""Which of the running gateways a command is about: the only one, or the one that is named."""

from collections.abc import Sequence
from typing import Annotated

import typer

from gateway.errors import ConfigError, GatewayError
from gateway.serving.control.records import GatewayRecord, running

Pid = Annotated[int | None, typer.Option("--pid", metavar="PID", help="Process id of the gateway.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the gateway ([gateway] name).")]
All = Annotated[bool, typer.Option("--all", help="All running gateways.")]


def matching(pid: int | None, name: str | None) -> list[GatewayRecord]:
    """The running gateways of this user that fit.

    Raises:
        GatewayError: there is none.
    """
    there = running()
    found = [record for record in there if pid in (None, record.pid) and name in (None, record.name)]
    if found:
        return found
    if there:
        wanted = f"with the id {pid}" if pid is not None else f"called {name!r}"
        raise GatewayError(f"no running gateway {wanted}", remedy=f"there are: {_listed(there)}")
    raise GatewayError("no gateway is running", remedy="a host starts one, or you do: mcp-gateway serve --http")


def the_one(pid: int | None, name: str | None) -> GatewayRecord:
    """The only one that fits. Raises ConfigError when several do."""
    found = matching(pid, name)
    if len(found) > 1:
        raise ConfigError(f"{len(found)} gateways are running", remedy=f"choose one with --pid: {_listed(found)}")
    return found[0]


def chosen(pid: int | None, name: str | None, everyone: bool) -> Sequence[GatewayRecord]:
    """Every one that fits with `--all`, else the only one."""
    return matching(pid, name) if everyone else [the_one(pid, name)]


def _listed(records: Sequence[GatewayRecord]) -> str:
    return ", ".join(f"{record.pid} ({record.name}, {record.config or 'no file'})" for record in records)

"""`mcp-gateway import`: put the servers that hosts have behind the gateway."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.exit_codes import DONE, complain, refuse, refuse_to_guess
from gateway.cli.move_secrets import ToKeyring, go_to_keyring, store_secrets
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.config.find_config import config_candidates, find_file
from gateway.config.logins import login_command
from gateway.core.fact_words import counted
from gateway.errors import ConfigError
from gateway.hosts.config_files.discover import DiscoveredServers, discover
from gateway.hosts.config_files.files import decoded_text, read_bytes, replace_file
from gateway.hosts.config_files.hosts import HOSTS
from gateway.hosts.config_files.import_servers import ImportPlan, Row, plan_import, wants_login, with_keyring
from gateway.hosts.config_files.login_probe import ask_for_logins, may_want_a_login
from gateway.hosts.config_files.machine import Machine
from gateway.hosts.config_files.registration_status import registration_status
from gateway.hosts.config_files.starter_config import HEAD
from gateway.serving.control.gateway_ports import gateway_ports


def import_(
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="[HOST|FILE]...", help=f"Hosts ({', '.join(HOSTS)}) or files. Default: every host."),
    ] = None,
    config: ConfigFile = None,
    mcp_remote: Annotated[
        bool,
        typer.Option("--mcp-remote", help="Import servers that want a login (OAuth) through npx -y mcp-remote."),
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask servers whether they want a login.")] = False,
    keyring: ToKeyring = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")] = False,
    as_json: AsJson = False,
) -> int:
    """Import the MCP servers of your hosts into the configuration; the hosts' files are not changed."""
    if as_json and not (yes or dry_run):
        refuse("--json needs --yes or --dry-run: nothing is asked then")
    target = configuration(config)
    before = read_bytes(target)
    discovered = discover(source or (), Machine.here(gateway_ports()))
    answers = (
        {} if offline else ask_for_logins([one.upstream for one in discovered.servers if one.upstream], os.environ)
    )
    logins = frozenset(url for url, wants in answers.items() if wants)
    text = decoded_text(before, target) if before is not None else HEAD
    plan = plan_import(discovered.servers, text, str(target), logins=logins, mcp_remote=mcp_remote)
    if as_json:
        say_json(_as_json(plan, discovered, target))
    else:
        _show(plan, discovered)
        _show_elsewhere(discovered, source or ())
        _show_logins(plan, answers)
    for problem in discovered.problems:
        complain(problem)
    if dry_run and not as_json:
        say(_would_write(len(plan.new), target, exists=before is not None))
    elif plan.rows and not plan.new and not as_json:
        say(f"{target}: there was nothing to add")
    if dry_run or not plan.new:
        return DONE
    if not yes and not _agreed(len(plan.new), target):
        return DONE
    in_keyring, secrets = with_keyring(plan, text, str(target))
    if secrets and go_to_keyring(secrets, keyring, ask=not yes) and store_secrets(secrets, may_stay=keyring is None):
        plan = in_keyring
    replace_file(target, plan.text.encode("utf-8"), expected=before)
    if not as_json:
        say(f"{target}: {counted(len(plan.new), 'upstream')} added")
        say("next: `mcp-gateway tools` tries them; `mcp-gateway install <host> --only` puts the gateway in their place")
    return DONE


def configuration(asked: Path | None) -> Path:
    """The absolute path of the configuration in force, or of the user's own if there is none; never a JSON file."""
    found = find_file(asked, environ=os.environ) or list(config_candidates())[-1]
    if found.suffix.lower() == ".json":
        raise ConfigError("is a JSON file of another program", where=str(found), remedy="name a .toml with --config")
    return found.absolute()


def _agreed(count: int, target: Path) -> bool:
    if not sys.stdin.isatty():
        refuse_to_guess(": --yes writes, --dry-run only shows")
    return typer.confirm(f"Put {counted(count, 'server')} into {target}?", default=True)


def _would_write(count: int, target: Path, *, exists: bool) -> str:
    """Say what a dry run leaves undone, and in which file."""
    if not count:
        return f"{target}: nothing to add"
    added = f"{counted(count, 'upstream')} would be added"
    return f"{target}: {added}" if exists else f"{target}: {added}, in a new file"


def _show(plan: ImportPlan, discovered: DiscoveredServers) -> None:
    if not plan.rows:
        known = ", ".join(str(file) for file in discovered.files) or "no known host has a configuration here"
        say(f"no servers were found ({known})")
        say("next: `mcp-gateway add` puts one behind the gateway, `mcp-gateway init` several")
        return
    say_table(
        ("server", "from", "starts", "behind the gateway"),
        [(row.server.name, row.server.origin, _starts(row), _becomes(row)) for row in plan.rows],
    )
    for row in plan.rows:
        for line in row.server.remarks if row.what == "new" else ():
            remark(f"{row.upstream}: {line}")


def _show_elsewhere(discovered: DiscoveredServers, sources: Sequence[str]) -> None:
    """Show the files of other projects that have servers: only the working folder is looked at."""
    at = Machine.here()
    for host in HOSTS.values():
        if not sources or host.name in sources:
            for project in registration_status(host, at).projects:
                if project.others and project.file not in discovered.files:
                    servers, file = counted(len(project.others), "server"), quote(str(project.file))
                    remark(f"not looked at: {project.file} ({servers}): `mcp-gateway import {file}`")


def _show_logins(plan: ImportPlan, answers: Mapping[str, bool]) -> None:
    """Show which servers want a login and how to log in, and which may want one but could not be asked."""
    wanting = frozenset(url for url, wants in answers.items() if wants)
    for row in plan.rows:
        upstream = row.server.upstream or {}
        if row.what in ("new", "known") and wants_login(row.server, wanting):
            remark(
                f"{row.upstream} wants a login (OAuth): `{login_command(str(row.upstream))}` opens it in your browser"
            )
        elif row.what == "new" and may_want_a_login(upstream) and upstream["url"] not in answers:
            remark(f"{row.upstream}: no token is sent; should it want a login (OAuth), `mcp-gateway tools` says so")


def _starts(row: Row) -> str:
    """Name the program or the transport, but never arguments and addresses, which may contain secrets."""
    if row.server.upstream is None:
        return "-"
    return str(row.server.upstream.get("command") or "a url")


def _becomes(row: Row) -> str:
    match row.what:
        case "own":
            return "(the gateway itself)"
        case "unusable":
            return f"no: {row.server.obstacle}"
        case "known":
            return f"{row.upstream} (there already)"
        case "twin":
            return f"{row.upstream} (the same server)"
        case "new":
            disabled = row.server.upstream is not None and row.server.upstream.get("enabled") is False
            return f"{row.upstream} (not enabled)" if disabled else str(row.upstream)


def _as_json(plan: ImportPlan, discovered: DiscoveredServers, target: Path) -> dict[str, Any]:
    return {
        "config": str(target),
        "files": [str(file) for file in discovered.files],
        "problems": discovered.problems,
        "servers": [
            {
                "name": row.server.name,
                "host": row.server.host,
                "file": row.server.file,
                "project": row.server.project,
                "result": row.what,
                "upstream": row.upstream,
                "enabled": (row.server.upstream or {}).get("enabled", True),
                "remarks": list(row.server.remarks),
                "obstacle": row.server.obstacle,
            }
            for row in plan.rows
        ],
    }

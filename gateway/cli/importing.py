"""`mcp-gateway import`: the servers that hosts have, put behind the gateway."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.failing import DONE, complain, refuse
from gateway.cli.started import AsJson, ConfigFile
from gateway.cli.terminal import remark, say, say_json, say_table
from gateway.config.finding import find_file, places
from gateway.errors import ConfigError
from gateway.registration.files import as_text, read_bytes, replace_file
from gateway.registration.hosts import HOSTS
from gateway.registration.importing import ImportPlan, Row, plan_import
from gateway.registration.looking import Looked, look
from gateway.registration.starting import HEAD
from gateway.registration.surroundings import Surroundings


def import_(
    source: Annotated[
        list[str] | None,
        typer.Argument(metavar="[HOST|FILE]...", help=f"Where to look (else every host): {', '.join(HOSTS)}, a file."),
    ] = None,
    config: ConfigFile = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: AsJson = False,
) -> int:
    """Find the servers that your hosts have, and put them behind the gateway; hosts' files stay as they are."""
    if as_json and not (yes or dry_run):
        refuse("--json needs --yes or --dry-run: nothing is asked then")
    target = configuration(config)
    before = read_bytes(target)
    looked = look(source or (), Surroundings.here())
    plan = plan_import(looked.servers, as_text(before, target) if before is not None else HEAD, str(target))
    if as_json:
        say_json(_as_json(plan, looked, target))
    else:
        _show(plan, looked)
    for problem in looked.problems:
        complain(problem)
    if dry_run or not plan.new:
        return DONE
    if not yes and not _agreed(len(plan.new), target):
        return DONE
    replace_file(target, plan.text.encode("utf-8"), expected=before)
    if not as_json:
        say(f"{target}: {_count(len(plan.new), 'upstream')} added")
        say("next: `mcp-gateway tools` tries them; `mcp-gateway install <host> --only` puts the gateway in their place")
    return DONE


def configuration(asked: Path | None) -> Path:
    """The configuration that is in force, or where a user's own would be; absolute, and never a JSON file."""
    found = find_file(asked, environ=os.environ) or list(places())[-1]
    if found.suffix.lower() == ".json":
        raise ConfigError("is a JSON file of another program", where=str(found), remedy="name a .toml with --config")
    return found.absolute()


def _agreed(count: int, target: Path) -> bool:
    if not sys.stdin.isatty():
        refuse("there is nobody to ask: --yes writes, --dry-run only shows")
    return typer.confirm(f"Put {_count(count, 'server')} into {target}?", default=True)


def _show(plan: ImportPlan, looked: Looked) -> None:
    if not plan.rows:
        known = ", ".join(str(file) for file in looked.files) or "no known host has a configuration here"
        say(f"no servers were found ({known})")
        return
    say_table(
        ("server", "from", "starts", "behind the gateway"),
        [(row.server.name, row.server.origin, _starts(row), _becomes(row)) for row in plan.rows],
    )
    for row in plan.rows:
        for line in row.server.remarks if row.what == "new" else ():
            remark(f"{row.upstream}: {line}")


def _starts(row: Row) -> str:
    """The program or the transport; never arguments and addresses, which may hold secrets."""
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


def _as_json(plan: ImportPlan, looked: Looked, target: Path) -> dict[str, Any]:
    return {
        "config": str(target),
        "files": [str(file) for file in looked.files],
        "problems": looked.problems,
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


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

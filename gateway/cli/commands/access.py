"""`mcp-gateway access`: which hosts people have approved, and the end of it."""

import getpass
import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import anyio
import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.exit_codes import DONE, FAILED, complain, refuse
from gateway.cli.terminal import help_without_command, remark, say, say_json, say_table
from gateway.config.find_config import state_folder
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.errors import ConfigError
from gateway.serving.authorization.approvals import Approval, all_approvals, revoke
from gateway.serving.authorization.database import Database, database_path

app = typer.Typer(name="access", help="List or revoke approved hosts.", invoke_without_command=True)


@app.callback()
def common(context: typer.Context) -> None:
    """Hosts that people have approved, such as claude.ai: list them, revoke them."""
    help_without_command(context)


@app.command("ls")
def ls(config: ConfigFile = None, as_json: AsJson = False) -> int:
    """List the approved hosts: by whom, and when last used."""
    approvals = _database(load_settings(config).settings).run_now(partial(all_approvals, now=time.time()))
    if as_json:
        say_json([asdict(approval) for approval in approvals])
    elif not approvals:
        remark("no host has been approved")
    else:
        say_table(("id", "person", "host", "goes to", "approved", "last used", "until"), map(_row, approvals))
    return DONE


@app.command("revoke")
def end(
    approval: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="What `access ls` shows as the id. Repeatable.")
    ] = None,
    person: Annotated[str | None, typer.Option("--person", metavar="NAME", help="All hosts of this person.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All hosts of all people.")] = False,
    config: ConfigFile = None,
) -> int:
    """Revoke approved hosts.

    A running gateway refuses them within a minute.

    Example: mcp-gateway access revoke --person alice
    """
    if bool(approval) + (person is not None) + everything != 1:
        refuse("name the hosts to revoke: ids, or --person NAME, or --all")
    settings = load_settings(config).settings
    database = _database(settings)
    found = database.run_now(partial(all_approvals, now=time.time()))
    if unknown := set(approval or ()) - {one.id for one in found}:
        refuse(f"there is no approved host {min(unknown)!r}: `mcp-gateway access ls` lists them")
    ended = [one for one in found if everything or one.principal == person or one.id in (approval or ())]
    for one in ended:
        database.run_now(partial(revoke, approval=one.id))
        say(f"revoked: {one.client_name}, approved by {one.principal}")
    if not ended:
        remark("no host has been approved")
    elif settings.audit.path is not None and (problem := anyio.run(_recorded, settings, ended)) is not None:
        complain(f"revoked, but not recorded in the audit trail: {problem}")
        return FAILED
    return DONE


async def _recorded(settings: Settings, ended: Sequence[Approval]) -> str | None:
    """Write a line for each approval into the audit trail; return why that failed, if it did.

    Where a gateway writes its own file, this is another one beside it, as of any further process.
    """
    from gateway.telemetry.audit.trail import open_audit_trail

    by = f"command line ({getpass.getuser()})"
    try:
        async with open_audit_trail(settings, lambda _: None) as trail:
            assert trail is not None, "there is a path"
            for one in ended:
                about = (one.principal, "revoked", one.id, one.client_name, one.redirect)
                trail.host_approval(*about, by=by)
                await trail.flush()
    except ConfigError as error:
        return str(error)
    return trail.problem


def _database(settings: Settings) -> Database:
    """Return the database of the gateway with these settings. Raises ConfigError if there is none."""
    path = database_path(settings, state_folder(os.environ))
    if settings.access.authorization_server is None or path is None:
        raise ConfigError(
            "the configuration has no authorization server, or no folder for its state",
            where="access.authorization_server",
            remedy="docs/access.md says how to set one up",
        )
    database = Database(path)
    database.check()
    return database


def _row(approval: Approval) -> Sequence[str]:
    def day(seconds: float) -> str:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"

    return (
        approval.id,
        approval.principal,
        approval.client_name,
        approval.redirect,
        day(approval.created),
        day(approval.used),
        day(approval.expires),
    )

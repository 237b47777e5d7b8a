"""`mcp-gateway access`: which hosts people have approved, and the end of it."""

import getpass
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from gateway.cli.command_context import AsJson, ConfigFile
from gateway.cli.exit_codes import DONE, FAILED, complain, refuse
from gateway.cli.terminal import help_without_command, remark, say, say_json, say_table
from gateway.config.find_config import state_folder
from gateway.config.load_settings import load_settings
from gateway.config.schema import Settings
from gateway.errors import ConfigError
from gateway.serving.authorization.approvals import Approval
from gateway.serving.authorization.sqlite_database import database_path

if TYPE_CHECKING:
    from gateway.serving.authorization.state import State

app = typer.Typer(name="access", help="List or revoke approved hosts.", invoke_without_command=True)


@app.callback()
def common(context: typer.Context) -> None:
    """Hosts that people have approved, such as claude.ai: list them, revoke them."""
    help_without_command(context)


@app.command("ls")
@app.command("list", hidden=True)
def ls(config: ConfigFile = None, as_json: AsJson = False) -> int:
    """List the approved hosts: by whom, and when last used."""
    approvals = anyio.run(_all_approvals, load_settings(config).settings)
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

    def chosen(found: Sequence[Approval]) -> Sequence[Approval]:
        if unknown := set(approval or ()) - {one.id for one in found}:
            refuse(f"there is no approved host {min(unknown)!r}: `mcp-gateway access ls` lists them")
        return [one for one in found if everything or one.principal == person or one.id in (approval or ())]

    ended = anyio.run(_revoked, settings, chosen)
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


async def _all_approvals(settings: Settings) -> Sequence[Approval]:
    async with _opened(settings) as state:
        return await state.all_approvals(time.time())


async def _revoked(
    settings: Settings, chosen: Callable[[Sequence[Approval]], Sequence[Approval]]
) -> Sequence[Approval]:
    async with _opened(settings) as state:
        ended = chosen(await state.all_approvals(time.time()))
        for one in ended:
            await state.revoke(one.id)
            say(f"revoked: {one.client_name}, approved by {one.principal}")
        return ended


@asynccontextmanager
async def _opened(settings: Settings) -> "AsyncGenerator[State]":
    """Context manager: the state of the gateway with these settings. Raises ConfigError if there is none."""
    from gateway.serving.authorization.state import state_of

    server, folder = settings.access.authorization_server, state_folder(os.environ)
    if server is None or (server.state is None and database_path(settings, folder) is None):
        raise ConfigError(
            "the configuration has no authorization server, or no folder for its state",
            where="access.authorization_server",
            remedy="docs/access/claude-ai-and-chatgpt.md says how to set one up",
        )
    state = state_of(settings, folder)
    try:
        state.check()
        yield state
    finally:
        await state.close()


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

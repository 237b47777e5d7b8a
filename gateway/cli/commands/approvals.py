"""`mcp-gateway approvals`: calls that a rule lets pass only with the approval of the user."""

import sys
import time
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson
from gateway.cli.exit_codes import DONE, FAILED, complain, refuse
from gateway.cli.running_gateways import Name, Pid, matching
from gateway.cli.terminal import help_without_command, remark, say, say_json
from gateway.core.fact_words import plain
from gateway.errors import GatewayError
from gateway.serving.control.client import ask
from gateway.serving.control.records import GatewayRecord

app = typer.Typer(name="approvals", help="Approve calls that wait for it.", invoke_without_command=True)

CallId = Annotated[str, typer.Argument(metavar="ID", help="Id of the call, as `approvals ls` shows it.")]

Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Approve even if standard input is not a terminal, as in a script.")
]

_SECONDS = 5.0


@app.callback()
def common(context: typer.Context) -> None:
    """Calls that wait for the approval of their user: list, approve or deny them."""
    help_without_command(context)


@app.command("ls")
@app.command("list", hidden=True)
def ls(pid: Pid = None, name: Name = None, as_json: AsJson = False) -> int:
    """List the calls that wait, with their arguments."""
    waiting = [
        each for record in matching(pid, name) for each in ask(record, "approvals", _SECONDS, action="ls")["waiting"]
    ]
    if as_json:
        say_json(waiting)
    elif not waiting:
        remark("no call waits for an approval")
    for each in () if as_json else waiting:
        _show(each)
    return DONE


@app.command("approve")
def approve(call: CallId, pid: Pid = None, name: Name = None, as_json: AsJson = False, yes: Yes = False) -> int:
    """Approve a call, once. Its host has to make it again, with the same arguments."""
    if not yes and not sys.stdin.isatty():
        refuse("an approval is given by a person in a terminal, and this is none; --yes approves nevertheless")
    return _settle("approve", call, matching(pid, name), as_json)


@app.command("deny")
def deny(call: CallId, pid: Pid = None, name: Name = None, as_json: AsJson = False) -> int:
    """Deny a call: if its host makes it again, it is told so."""
    return _settle("deny", call, matching(pid, name), as_json)


def _settle(action: str, call: str, records: list[GatewayRecord], as_json: bool) -> int:
    problem = ""
    for record in records:
        try:
            settled = ask(record, "approvals", _SECONDS, action=action, id=call)
        except GatewayError as error:
            problem = str(error)
            continue
        if as_json:
            say_json(settled)
        else:
            say("approved; the host has to call it again:" if action == "approve" else "denied:")
            _show(settled)
        return DONE
    complain(problem)
    return FAILED


def _show(call: dict[str, Any]) -> None:
    age = max(0.0, time.time() - call["asked"])
    who = f"{plain(call['host'], 60) or 'a host without a name'} as {plain(call['principal'], 60)}"
    say(f"{call['id']}  {call['upstream']}: {plain(call['tool'], 200)}, for {who}, {age:.0f} s ago")
    say(f"  arguments: {call['arguments']}")
    say(f"  rule: {call['rule']}{': ' + plain(call['reason']) if call['reason'] else ''}")

"""`mcp-gateway policy`: say which rule decides about a tool and about a call."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from gateway.cli.command_context import AsJson, ConfigFile, settings_for
from gateway.cli.exit_codes import DONE, FAILED, refuse
from gateway.cli.named_callers import PrincipalName, TokenName, named_caller, remembered_tools
from gateway.cli.terminal import help_without_command, remark, say, say_json
from gateway.config.schema import Settings
from gateway.core.model.grant import SEPARATOR
from gateway.core.model.json_values import is_dict
from gateway.core.policy import Decision, ToolFacts, hints_of
from gateway.errors import ConfigError

app = typer.Typer(name="policy", help="Say which rule decides about a call.", invoke_without_command=True)


@app.callback()
def common(context: typer.Context) -> None:
    """The rules about what may be called: docs/policy.md."""
    help_without_command(context)


@app.command("test")
def decide(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Tool as server__tool, by the server's own name for it.")],
    arguments: Annotated[str, typer.Option("--arguments", metavar="JSON", help="Arguments of the call.")] = "{}",
    token: TokenName = None,
    principal: PrincipalName = None,
    annotations: Annotated[
        str | None,
        typer.Option("--annotations", metavar="JSON", help="The tool's annotations. Default: as last listed."),
    ] = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> int:
    """Say which rule decides about a tool and a call.

    That is whether the tool is listed, and whether the call is allowed, for a host on this machine, or for one that
    comes with a token. No server is started.

    Exit code 1: the call is not simply allowed.

    Example: mcp-gateway policy test files__delete --arguments '{"path": "/tmp/x"}' --principal alice
    """
    from gateway.cli.diagnosis.globs import check_order
    from gateway.routing.call_rules import policy_of

    settings = settings_for(config, None)
    upstream, separator, name = tool.partition(SEPARATOR)
    if not separator or upstream not in settings.upstreams:
        known = ", ".join(settings.upstreams)
        raise ConfigError(f"{tool!r} is not a tool of a server", remedy=f"SERVER__TOOL; the servers are: {known}")
    caller = named_caller(settings, token, principal)
    declared = _remembered(upstream, name, settings) if annotations is None else [{"annotations": _object(annotations)}]
    facts = ToolFacts(upstream, name, hints_of(declared))
    policy = policy_of(settings)
    given = _object(arguments)
    if caller.grant.reaches_tool(upstream, name):
        listed = policy.for_list(facts, caller.principal)
        call = policy.for_call(facts, caller.principal, given)
    else:
        listed = call = Decision("deny", reason=f"it does not exist for {caller.words}")
    if as_json:
        hints = facts.hints._asdict()
        say_json({"hints": hints, "known": bool(declared), "list": _as_json(listed), "call": _as_json(call)})
    else:
        if not declared:
            say("the tool is not known yet, so it counts as one without annotations: destructive, in an open world")
        say(f"list: {'withheld' if listed.verdict == 'deny' else 'offered'}{_by(listed)}")
        say(f"call: {_WORDS[call.verdict]}{_by(call)}")
        for finding in check_order(settings):
            remark(f"note: {finding.text} ({finding.remedy})")
    return DONE if call.verdict == "allow" else FAILED


_WORDS = {"allow": "allowed", "deny": "denied", "approve": "allowed with the approval of the user"}


def _by(decision: Decision) -> str:
    because = f" ({decision.reason})" if decision.reason else ""
    if decision.rule:
        return f", by the rule {decision.rule!r}{because}"
    return f": {decision.reason}" if decision.reason else ", because no rule matches"


def _as_json(decision: Decision) -> dict[str, Any]:
    return {"verdict": decision.verdict, "rule": decision.rule or None, "reason": decision.reason or None}


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        refuse(f"{text!r} is not JSON: {error}")
    if not is_dict(value):
        refuse(f"{text!r} is not a JSON object")
    return value


def _remembered(upstream: str, tool: str, settings: Settings) -> list[Mapping[str, Any]]:
    """Return the tools of this name as the server listed them last."""
    return [each for each in remembered_tools(settings).get(upstream, ()) if each.get("name") == tool]

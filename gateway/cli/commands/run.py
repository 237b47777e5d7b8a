"""`mcp-gateway run`: run a script that calls tools (code mode), and show what each host would be sent."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.command_context import (
    AsJson,
    ConfigFile,
    ProfileNames,
    Revision,
    UpstreamUrls,
    profiles_option,
    settings_for,
    the_profiles,
)
from gateway.cli.commands.call import Showing, call_and_show
from gateway.cli.exit_codes import refuse
from gateway.cli.given_options import GivenOptions
from gateway.cli.pages import WithPages
from gateway.cli.print_result import Verbose
from gateway.cli.toolset_option import ToolsetName
from gateway.core.model.revisions import REVISIONS
from gateway.core.own_names import RUN_TOOL


def run(
    script: Annotated[str, typer.Argument(metavar="FILE", help="The script, in Python; - reads stdin.")],
    config: ConfigFile = None,
    upstream: UpstreamUrls = None,
    profile: Annotated[ProfileNames, profiles_option()] = None,
    revision: Revision = REVISIONS[-1],
    app: WithPages = False,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Save pictures, sound and files in this directory.")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Also show what the result costs each model.")] = False,
    toolset: ToolsetName = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the calls, if a rule wants that.")] = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> int:
    """Run a script that calls tools, and show what a host would be sent.

    The script has the functions and limits that [code_mode] gives those of models, even while that is not enabled. It
    runs in the sandbox, with the tools of upstreams that are started for it; a running gateway is not used.
    """
    settings = settings_for(config, upstream)
    enabled = settings.code_mode.model_copy(update={"enabled": True})
    given = GivenOptions(config, upstream or (), the_profiles(profile), revision, app, toolset)
    showing = Showing(save=save, tokens=tokens, verbose=verbose, as_json=as_json)
    settings = settings.model_copy(update={"code_mode": enabled})
    return call_and_show(settings, RUN_TOOL, {"code": _code(script)}, given, showing, approve=approve)


def _code(script: str) -> str:
    if script == "-":
        return sys.stdin.read()
    try:
        return Path(script).read_text("utf-8")
    except OSError as error:
        refuse(f"the script {script} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        refuse(f"the script {script} is not a text in UTF-8")

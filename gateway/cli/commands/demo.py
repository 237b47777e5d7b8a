"""`mcp-gateway demo`: show what each host's model gets, directly and through the gateway."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.command_context import AsJson
from gateway.cli.demo import DEFAULT_REPORT, run_demo


def demo(
    report: Annotated[
        Path, typer.Option("--report", metavar="FILE", help="File for the report with the pictures.")
    ] = DEFAULT_REPORT,
    as_json: AsJson = False,
) -> int:
    """Start the gateway and example servers, connect as several hosts, and show what each host's model gets.

    A result counts as shown or kept if nothing of it is lost, and as seen if the model gets all of it.
    """
    return run_demo(report, json_output=as_json)

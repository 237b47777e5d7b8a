"""`mcp-gateway reload`: make a running gateway read its configuration again."""

from datetime import datetime
from typing import Any

from gateway.cli.command_context import AsJson
from gateway.cli.exit_codes import DONE, FAILED, UNUSABLE, complain
from gateway.cli.running_gateways import All, Name, Pid, chosen
from gateway.cli.terminal import say, say_json
from gateway.errors import GatewayError
from gateway.serving.control.client import RELOAD_SECONDS, ControlUnanswered, ask
from gateway.serving.control.reload_config import lines_of


def reload(pid: Pid = None, name: Name = None, everyone: All = False, as_json: AsJson = False) -> int:
    """Have a running gateway read its configuration again, and show what has changed.

    Gateways also notice a changed file by themselves. Exit code 2: the file is refused, and the previous configuration
    stays in force.
    """
    code = DONE
    answers: list[dict[str, Any]] = []
    for record in chosen(pid, name, everyone):
        about = {"pid": record.pid, "config": record.config}
        try:
            read = ask(record, "status")["configuration"]["read"]
            difference = ask(record, "reload", RELOAD_SECONDS)
        except GatewayError as error:
            complain(str(error))
            answers.append({**about, "problem": str(error)})
            code = max(code, FAILED if isinstance(error, ControlUnanswered) else UNUSABLE)
            continue
        answers.append({**about, "problem": None, **difference})
        if not as_json:
            say(f"{record.config} (process {record.pid})")
            for line in lines_of(difference) or [f"nothing has changed since {_clock(read)}, when it was last read"]:
                say(f"  {line}")
    if as_json:
        say_json({"gateways": answers})
    return code


def _clock(moment: str) -> str:
    """Return the local time of day of a moment in a report."""
    return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S")

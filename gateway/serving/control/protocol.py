"""The protocol of the control socket: one line of JSON in, one line of JSON out, and the connection is closed.

{"command": "status", "token": "..."}       the token only if the endpoint has one
{"command": "calibrate", "until": 1795000000.0, "host": null}       a command may have more members
{"ok": true, "result": {...}}
{"ok": false, "error": "one line or several"}

Content follows a line as bytes; the line has their number (`gateway.serving.control.contents`). After `attach`, the
connection stays open and carries the messages of a host (`gateway.serving.shared.attach`).
"""

import json
from typing import Any, Literal, get_args

from gateway.core.model.json_values import is_dict

Command = Literal[
    "status",
    "reload",
    "stop",
    "calibrate",
    "content",
    "approvals",
    "pins",
    "login",
    "logout",
    "console",
    "attach",
]
COMMANDS: tuple[Command, ...] = get_args(Command)

MAX_REQUEST_BYTES = 16_384
MAX_REPLY_BYTES = 8 * 1024 * 1024


def format_line(value: dict[str, Any]) -> bytes:
    """Return a value as a line. ASCII only, so that it contains no control sequences for terminals."""
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def parse_line(line: bytes) -> dict[str, Any]:
    """Return the value of a line. Raises ValueError if it is not a JSON object."""
    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not is_dict(value):
        raise ValueError("not a JSON object")
    return value


def result(value: dict[str, Any]) -> bytes:
    """Return the reply with a result."""
    return format_line({"ok": True, "result": value})


def refusal_reply(error: str) -> bytes:
    """Return the reply with an error."""
    return format_line({"ok": False, "error": error})

"""Send commands to a running gateway from another process. Uses plain sockets, without an event loop."""

import time
from typing import Any

from gateway.errors import GatewayError
from gateway.serving.control.protocol import MAX_REPLY_BYTES, Command, format_line, parse_line
from gateway.serving.control.records import GatewayRecord

STATUS_SECONDS = 5.0
"""Time for a gateway to report its status; one that takes longer is reported as busy."""

RELOAD_SECONDS = 30.0


class ControlUnanswered(GatewayError):
    """A running gateway cannot be reached, or did not answer in time."""


def ask(record: GatewayRecord, command: Command, seconds: float = STATUS_SECONDS, **details: Any) -> dict[str, Any]:
    """Send a command and return the gateway's answer. `details` that are None are not sent.

    Raises:
        ControlUnanswered: it did not answer, or the answer cannot be read.
        GatewayError: it refused, with its reason.
    """
    request: dict[str, Any] = {"command": command, **{key: one for key, one in details.items() if one is not None}}
    if record.endpoint.token is not None:
        request["token"] = record.endpoint.token
    try:
        line = _exchange(record, format_line(request), time.monotonic() + seconds)
        reply = parse_line(line)
    except TimeoutError:
        raise ControlUnanswered(f"the gateway {record.pid} did not answer within {seconds:g} s") from None
    except (OSError, ValueError) as error:
        raise ControlUnanswered(f"the gateway {record.pid} cannot be reached: {error}") from None
    if reply.get("ok") is True and isinstance(reply.get("result"), dict):
        return reply["result"]
    raise GatewayError(str(reply.get("error") or "the gateway refused"))


def _exchange(record: GatewayRecord, request: bytes, deadline: float) -> bytes:
    with record.endpoint.connect(max(0.1, deadline - time.monotonic())) as connection:
        connection.sendall(request)
        parts: list[bytes] = []
        size = 0
        while size <= MAX_REPLY_BYTES:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
            part = connection.recv(65_536)
            if not part or part.endswith(b"\n"):
                return b"".join([*parts, part])
            parts.append(part)
            size += len(part)
    raise ValueError("the answer is too long")

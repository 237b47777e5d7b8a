"""A relay's connection to the shared gateway, and what it has to understand of the messages there.

Standard library only.
"""

import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gateway.core.model.json_values import as_object, is_dict
from gateway.errors import GatewayError
from gateway.serving.control.protocol import MAX_REPLY_BYTES, format_line, parse_line
from gateway.serving.control.records import GatewayRecord
from gateway.serving.shared.attach import ATTACH, fingerprints, new_salt, variables_in
from gateway.serving.shared.relay_options import RelayOptions

if TYPE_CHECKING:
    from gateway.serving.mcp.early_lists import EarlyLists
    from gateway.serving.mcp.early_stdio import Arrival

_CONNECT_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_CHUNK = 256 * 1024
_LATE_SECONDS = 0.25

_BEGINNING = re.compile(rb'\{"jsonrpc":"2\.0","(?:id":(?:(-?\d{1,20})|(?="))|(method)")')
"""How the gateway begins each message: an answer or request with a number, one with a text, or a notification."""
_METHOD = b',"method"'


class GivenUp(Exception):
    """Nobody waits for a gateway any more: the host has left."""


class Lost(Exception):
    """The gateway ended, or is about to: another attempt may find the next one."""


class Head(NamedTuple):
    """The kind of a message from the gateway (`answer`, `request` or `notification`), and its id."""

    kind: str
    id: str | int | None = None


@dataclass
class Attachment:
    """A connection to the gateway, from a certain time on."""

    record: GatewayRecord
    socket: socket.socket
    since: float
    rest: bytes
    sending: threading.Lock = field(default_factory=threading.Lock)
    said_goodbye: bool = False
    over: threading.Event = field(default_factory=threading.Event)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines that arrive, with their ends. Raises OSError."""
        parts = [self.rest]
        while True:
            chunk = parts.pop()
            start = 0
            while (end := chunk.find(b"\n", start) + 1) > 0:
                yield b"".join([*parts, chunk[start:end]])
                parts.clear()
                start = end
            parts.append(chunk[start:])
            if not (received := self.socket.recv(_CHUNK)):
                return
            parts.append(received)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message. If the gateway is gone, do nothing: its end is noticed where it is read."""
        with suppress(OSError), self.sending:
            self.socket.sendall(line_of(message))

    def end(self) -> None:
        """Say that no more messages follow."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection, which also ends `lines`."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def attach(
    record: GatewayRecord,
    config: Path,
    options: RelayOptions,
    toolsets: Sequence[str],
    first_id: int,
    give_up: Callable[[], bool] = lambda: False,
) -> Attachment:
    """Attach to a running gateway, for a host with these toolsets.

    `first_id` is the highest id of a request that a gateway has sent to the host. `give_up` returns true once nobody
    waits for its answer.

    Raises:
        GivenUp: `give_up` has returned true.
        Lost: it is ending, or has ended.
        GatewayError: it does not let this host attach, or does not answer.
    """
    connection, line, rest = _exchange(record, _attach_request(record, config, options, toolsets, first_id), give_up)
    answer = parse_line(line)
    if answer.get("ok") is not True:
        connection.close()
        raise GatewayError(str(answer.get("error") or "the shared gateway refuses this host"))
    if as_object(answer.get("result")).get("ending"):
        connection.close()
        raise Lost
    return Attachment(record, connection, time.monotonic(), rest)


def _attach_request(
    record: GatewayRecord, config: Path, options: RelayOptions, toolsets: Sequence[str], first_id: int
) -> dict[str, Any]:
    salt = new_salt()
    return {
        "command": "attach",
        "token": record.endpoint.token,
        "attach": ATTACH,
        "pid": os.getpid(),
        "profile": options.profile,
        "model": options.model,
        "toolset": options.toolset,
        "toolsets": list(toolsets),
        "first_id": first_id,
        "salt": salt,
        "environment": fingerprints(variables_in(config), os.environ, salt),
    }


def _exchange(
    record: GatewayRecord, request: dict[str, Any], give_up: Callable[[], bool]
) -> tuple[socket.socket, bytes, bytes]:
    """Send a request on a connection of its own. Return this, the answer, and the bytes that followed it."""
    try:
        connection = record.endpoint.connect(_CONNECT_SECONDS)
    except OSError as error:
        raise Lost from error
    try:
        connection.sendall(format_line(request))
        line, rest = _reply(connection, give_up)
        connection.settimeout(None)
    except GivenUp:
        connection.close()
        raise
    except TimeoutError:
        connection.close()
        raise GatewayError(
            f"the shared gateway does not answer within {_CONNECT_SECONDS:g} s", remedy=f"kill {record.pid}"
        ) from None
    except (OSError, ValueError) as error:
        connection.close()
        raise Lost from error
    return connection, line, rest


def about(arrival: "Arrival", lists: "EarlyLists | None", record: GatewayRecord) -> dict[str, Any]:
    """Return what the gateway has to know of a message that is about to be sent to it (`attach`); empty if nothing."""
    told: dict[str, Any] = {"waited": round(waited, 3)} if (waited := arrival.ago) > _LATE_SECONDS else {}
    if lists is not None and (asked := arrival.asked) is not None:
        # What has changed since the gateway was started may not be in its lists.
        is_same = lists.facts.changed < record.started
        told["list"] = {"key": asked.key if is_same else None, "given": asked.given}
    return told


def _reply(connection: socket.socket, give_up: Callable[[], bool]) -> tuple[bytes, bytes]:
    """Return the line with the gateway's answer, and the bytes after it. Raises OSError, or ValueError without one."""
    gathered, until = b"", time.monotonic() + _CONNECT_SECONDS
    connection.settimeout(_LOOK_SECONDS)
    while b"\n" not in gathered:
        try:
            received = connection.recv(_CHUNK)
        except TimeoutError:
            if give_up():
                raise GivenUp from None
            if time.monotonic() >= until:
                raise
            continue
        if len(gathered) > MAX_REPLY_BYTES or not received:
            raise ValueError("no answer")
        gathered += received
    line, _, rest = gathered.partition(b"\n")
    return line, rest


def head_of(line: bytes) -> Head:
    """Return what a message of the gateway is. Large ones are not parsed as a whole."""
    found = _BEGINNING.match(line)
    if found is not None and found[2]:
        return Head("notification")
    if found is not None and found[1]:
        kind = "request" if line.startswith(_METHOD, found.end()) else "answer"
        return Head(kind, int(found[1]))
    if found is not None and (text := _text_at(line, found.end())) is not None:
        value, end = text
        return Head("request" if line.startswith(_METHOD, end) else "answer", value)
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        return Head("notification")
    fields = message if is_dict(message) else {}
    request_id = fields.get("id")
    if not isinstance(request_id, (str, int)):
        return Head("notification")
    return Head("request" if "method" in fields else "answer", request_id)


def _text_at(line: bytes, start: int) -> tuple[str, int] | None:
    """Return the JSON string that begins there, and where it ends; None if it has escapes or is not ASCII."""
    end = line.find(b'"', start + 1)
    if end < 0 or b"\\" in (inner := line[start + 1 : end]) or not inner.isascii():
        return None
    return inner.decode("ascii"), end + 1


def line_of(message: Mapping[str, Any]) -> bytes:
    """Write a message as a line, with its end."""
    text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, in an id
        return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"

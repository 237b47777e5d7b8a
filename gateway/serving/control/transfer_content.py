"""Transfer content to and from a running gateway from another process, over plain sockets, in pieces."""

import socket
from collections.abc import Callable
from typing import Any, BinaryIO

from gateway.errors import GatewayError
from gateway.serving.control.client import ControlUnanswered
from gateway.serving.control.protocol import MAX_REPLY_BYTES, format_line, parse_line
from gateway.serving.control.records import GatewayRecord
from gateway.system.unread import is_readable

SILENCE_SECONDS = 60.0
"""Maximum time without progress: a remote store may need a while for the last piece."""

_PIECE = 256 * 1024

Progress = Callable[[int, int], object]
"""Called with the bytes done and the total."""


def upload_content(
    record: GatewayRecord, file: BinaryIO, described: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    """Send the gateway `described["size"]` bytes of the file, and return its description of the content.

    Raises:
        ControlUnanswered: it cannot be reached, or the file has fewer bytes.
        GatewayError: it refused, with its reason.
    """
    size = int(described["size"])
    with _asked(record, {"do": "put", **described}) as connection:
        try:
            done = 0
            # A refusal may arrive while there is still something to send.
            while done < size and not is_readable(connection.fileno()):
                piece = file.read(min(_PIECE, size - done))
                if not piece:
                    raise ControlUnanswered("the file is shorter than it was")
                connection.sendall(piece)
                done += len(piece)
                progress(done, size)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the gateway may have sent the reason
        except TimeoutError:
            raise ControlUnanswered(f"the gateway {record.pid} accepted no data for {SILENCE_SECONDS:g} s") from None
        return _reply(record, connection)[0]


def download_content(
    record: GatewayRecord, handle: str, owner: str | None, write_piece: Callable[[bytes], object], progress: Progress
) -> dict[str, Any]:
    """Receive content piece by piece, and return the gateway's description of it.

    Raises:
        ControlUnanswered: it cannot be reached, or the content broke off.
        GatewayError: it refused, with its reason.
    """
    with _asked(record, {"do": "get", "handle": handle, "owner": owner}) as connection:
        told, rest = _reply(record, connection)
        done, size = 0, int(told["size"])
        while done < size:
            piece = rest or _received(record, connection)
            rest = b""
            if not piece:
                raise ControlUnanswered(f"the content broke off after {done:,} of {size:,} bytes")
            write_piece(piece[: size - done])
            done += len(piece)
            progress(done, size)
    return told


def _asked(record: GatewayRecord, request: dict[str, Any]) -> socket.socket:
    whole = {"command": "content", **{key: value for key, value in request.items() if value is not None}}
    if record.endpoint.token is not None:
        whole["token"] = record.endpoint.token
    try:
        connection = record.endpoint.connect(SILENCE_SECONDS)
    except OSError as error:
        raise ControlUnanswered(f"the gateway {record.pid} cannot be reached: {error}") from None
    try:
        connection.sendall(format_line(whole))
    except BaseException:
        connection.close()
        raise
    return connection


def _reply(record: GatewayRecord, connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Return the result from the reply's line, and the bytes received after it so far."""
    line = rest = b""
    while True:
        piece = _received(record, connection)
        if not piece or len(line) > MAX_REPLY_BYTES:
            raise ControlUnanswered(f"the gateway {record.pid} did not answer")
        head, end, after = piece.partition(b"\n")
        line += head
        if end:
            rest = after
            break
    try:
        reply = parse_line(line)
    except ValueError as error:
        raise ControlUnanswered(f"the gateway {record.pid} sent an answer that cannot be read: {error}") from None
    if reply.get("ok") is True and isinstance(reply.get("result"), dict):
        return reply["result"], rest
    raise GatewayError(str(reply.get("error") or "the gateway refused"))


def _received(record: GatewayRecord, connection: socket.socket) -> bytes:
    try:
        return connection.recv(_PIECE)
    except TimeoutError:
        raise ControlUnanswered(f"the gateway {record.pid} sent nothing for {SILENCE_SECONDS:g} s") from None
    except OSError as error:
        raise ControlUnanswered(f"the gateway {record.pid} cannot be reached: {error}") from None

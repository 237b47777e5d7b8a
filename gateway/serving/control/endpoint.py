"""The address of a control socket: a private Unix socket, or a loopback port with a token. Standard library only.

On Windows Python's event loop has no Unix sockets, so the gateway listens on the loopback and requires a random token,
which is in a file that only its owner can read.
"""

import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

OWN_FOLDER = "mcp-gateway-"
"""How the name of a socket's own folder begins, if it has one."""


@dataclass(frozen=True)
class Endpoint:
    """The address of a gateway: a socket's path, or a loopback port with its token."""

    kind: Literal["unix", "tcp"]
    address: str
    token: str | None = None

    def connect(self, timeout: float) -> socket.socket:
        """Connect, with `timeout` in seconds for each step. Raises OSError."""
        if self.kind == "tcp":
            return socket.create_connection(("127.0.0.1", int(self.address)), timeout)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(self.address)
        except BaseException:
            connection.close()
            raise
        return connection

    def remove(self) -> None:
        """Remove the socket, and its own folder if nothing else is in it."""
        if self.kind == "unix":
            path = Path(self.address)
            path.unlink(missing_ok=True)
            if path.parent.name.startswith(OWN_FOLDER):
                with suppress(OSError):  # a folder with such a name may be somebody else's
                    path.parent.rmdir()

"""The control socket itself: a private Unix socket, or a loopback port with a token where there are none.

All differences between platforms are here. On Windows Python's event loop has no Unix sockets, so the gateway listens
on the loopback and requires a random token, which is in a file that only its owner can read.
"""

import secrets
import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import anyio
from anyio.abc import SocketAttribute, SocketListener

from gateway.system.runtime_dir import PRIVATE_FILE

_LONGEST_PATH = 100
"""Maximum length of a socket's path in bytes: systems allow 104 to 108, including the terminator."""
_OWN_FOLDER = "mcp-gateway-"


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
        """Remove the endpoint's files."""
        if self.kind == "unix":
            path = Path(self.address)
            path.unlink(missing_ok=True)
            if path.parent.name.startswith(_OWN_FOLDER):
                shutil.rmtree(path.parent, ignore_errors=True)


async def listen(folder: Path, name: str) -> tuple[SocketListener, Endpoint]:
    """Open this platform's control socket. `name` must be unique in the private `folder`. Raises OSError."""
    return await (listen_on_loopback() if sys.platform == "win32" else listen_on_socket(folder, name))


async def listen_on_socket(folder: Path, name: str) -> tuple[SocketListener, Endpoint]:
    """Open the Unix socket `<folder>/<name>.sock`, or one in a short private folder if that path is too long."""
    path = folder / f"{name}.sock"
    if len(str(path).encode()) > _LONGEST_PATH:
        path = Path(tempfile.mkdtemp(prefix=_OWN_FOLDER)) / "s"
    endpoint = Endpoint("unix", str(path))
    try:
        listener = await anyio.create_unix_listener(path, mode=PRIVATE_FILE)
    except BaseException:
        endpoint.remove()
        raise
    return listener, endpoint


async def listen_on_loopback() -> tuple[SocketListener, Endpoint]:
    """Open a free port of the loopback with a token."""
    listeners = await anyio.create_tcp_listener(local_host="127.0.0.1")
    listener = cast("SocketListener", listeners.listeners[0])
    port = cast("int", listener.extra_attributes[SocketAttribute.local_port]())
    return listener, Endpoint("tcp", str(port), secrets.token_urlsafe(32))

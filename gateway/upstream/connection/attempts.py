"""Attempts to connect, and their outcomes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, cast

from gateway.errors import Failure, FailureCode, UpstreamUnavailable
from gateway.upstream.transports.causes import LoginChanged, Resting, Vacated

if TYPE_CHECKING:
    from gateway.config.upstream_settings import UpstreamSettings
    from gateway.upstream.connection.connection import TransportName
    from gateway.upstream.connection.session import Session

Connect = Callable[..., AbstractAsyncContextManager["Session"]]
"""`gateway.upstream.connection.connection.connect`."""


def load_connect() -> Connect:
    """Import and return `connect`, which loads the SDK."""
    from gateway.upstream.connection.connection import connect

    return connect


def transports_of(settings: UpstreamSettings, found: TransportName | None) -> tuple[TransportName, ...]:
    """Return the transports to try, in this order. `found` is the one that the last connection was opened over."""
    if settings.replay is not None:
        return ("replay",)
    if settings.command is not None:
        return ("stdio",)
    if settings.openapi is not None:
        return ("openapi",)
    if settings.transport in ("http", "sse"):
        return (cast("TransportName", settings.transport),)
    return ("http", "sse") if found is None else (found,)


def reason_to_start(ended: Exception | None, failure: Failure) -> str:
    """Return why a connection is opened after one that `ended` with a failure, in words."""
    match ended:
        case Resting():
            return "it was called while it slept"
        case LoginChanged():
            return "there is another login"
        case Vacated():
            return str(ended)
        case _:
            return f"the last one failed: {failure.message}"


class Attempt:
    """The outcome of one attempt to connect: when it was ready, if ever, and the first failure."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.try_other = False
        """Whether another transport may succeed."""
        self._failure: Failure | None = None

    def failed(self, failure: Failure) -> None:
        """Record a failure of the attempt or of its connection; the first one counts."""
        self._failure = self._failure or failure

    @property
    def failure(self) -> Failure:
        """The first failure."""
        return self._failure or Failure(UpstreamUnavailable, FailureCode.STOPPING, "is being stopped")

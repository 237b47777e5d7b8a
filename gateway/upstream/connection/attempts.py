"""Attempts to connect: the outcome of one, and the error for a call without a connection."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from gateway.errors import UpstreamUnavailable
from gateway.upstream.connection.states import REMEDIES, UpstreamState
from gateway.upstream.transports.failures import Failure

if TYPE_CHECKING:
    from gateway.upstream.connection.session import Session

Connect = Callable[..., AbstractAsyncContextManager["Session"]]
"""`gateway.upstream.connection.connection.connect`."""


def machinery() -> Connect:
    """Import and return `connect`, which loads the SDK."""
    from gateway.upstream.connection.connection import connect

    return connect


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
        return self._failure or Failure(UpstreamUnavailable, "is being stopped")


def unavailable(name: str, state: UpstreamState, cause: str | None, trouble: Failure | None) -> UpstreamUnavailable:
    """Return the error for a call to an upstream that is not connected; `trouble` is the failure behind `cause`."""
    words = f"is still {state.value}" if state.is_pending else "is not available"
    said = trouble.words if trouble is not None else cause
    remedy = trouble.remedy if trouble is not None else None
    return UpstreamUnavailable(
        name, f"{words}: {said}" if said else words, remedy=remedy or REMEDIES[state].format(name=name)
    )

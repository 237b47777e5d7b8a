"""Attempts to connect: what came of one, and how to say that there is no connection."""

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
    """Load what connects, the SDK included."""
    from gateway.upstream.connection.connection import connect

    return connect


class Attempt:
    """What came of one attempt to connect: when it was ready, if it was, and the first thing that went wrong."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.try_other = False
        """Whether another transport may do better."""
        self._failure: Failure | None = None

    def failed(self, failure: Failure) -> None:
        """It failed, or what it had led to; the first failure counts."""
        self._failure = self._failure or failure

    @property
    def failure(self) -> Failure:
        """What went wrong first."""
        return self._failure or Failure(UpstreamUnavailable, "is being stopped")


def unavailable(name: str, state: UpstreamState, cause: str | None, trouble: Failure | None) -> UpstreamUnavailable:
    """The error for a call of an upstream that is not connected; `trouble` is what the cause was made of."""
    words = f"is still {state.value}" if state.is_pending else "is not available"
    said = trouble.words if trouble is not None else cause
    remedy = trouble.remedy if trouble is not None else None
    return UpstreamUnavailable(
        name, f"{words}: {said}" if said else words, remedy=remedy or REMEDIES[state].format(name=name)
    )

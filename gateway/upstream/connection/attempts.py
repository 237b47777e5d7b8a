"""Attempts to connect, and what came of one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from gateway.errors import Failure, FailureCode, UpstreamUnavailable

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
        return self._failure or Failure(UpstreamUnavailable, FailureCode.STOPPING, "is being stopped")

"""The caller of media work, and the time that one result has used: passed in a context variable."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Share:
    """Media work that belongs together: the `caller` that takes turns with others, and the `seconds` worked so far.

    With `is_result` all jobs together are bounded by the time of one result; otherwise each job is bounded alone.
    """

    caller: str
    is_result: bool = False
    seconds: float = 0.0


_CURRENT: ContextVar[Share | None] = ContextVar("media_share", default=None)


def current_share() -> Share | None:
    """Return the share that media work requested here belongs to."""
    return _CURRENT.get()


@contextmanager
def media_share(caller: str, *, is_result: bool = False) -> Generator[Share]:
    """Assign media work requested inside the context to one share of `caller`, unless it already belongs to a share."""
    if (present := _CURRENT.get()) is not None:
        yield present
        return
    share = Share(caller, is_result)
    token = _CURRENT.set(share)
    try:
        yield share
    finally:
        _CURRENT.reset(token)

"""For whom media work is done, and how much of it one result may take: passed in a context variable."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Share:
    """Media work that belongs together. `caller`: whose turn it is, among others who wait; `seconds`: worked so far.

    `is_result`: it is that of one result, and may take so long altogether; else each job is bounded alone.
    """

    caller: str
    is_result: bool = False
    seconds: float = 0.0


_CURRENT: ContextVar[Share | None] = ContextVar("media_share", default=None)


def current_share() -> Share | None:
    """The share that work which is asked for here belongs to."""
    return _CURRENT.get()


@contextmanager
def media_share(caller: str, *, is_result: bool = False) -> Generator[Share]:
    """What is asked of the media workers in here belongs together, and to this caller, unless it does already."""
    if (present := _CURRENT.get()) is not None:
        yield present
        return
    share = Share(caller, is_result)
    token = _CURRENT.set(share)
    try:
        yield share
    finally:
        _CURRENT.reset(token)

"""The id of the current request, which all its log lines have in common."""

import random
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_ids = random.Random()  # noqa: S311 - they tell lines apart, and protect nothing
_current: ContextVar[str | None] = ContextVar("gateway.request_id", default=None)


def request_id() -> str | None:
    """Return the id of the request that the running task answers, or None."""
    return _current.get()


@contextmanager
def new_request() -> Generator[str]:
    """Give the running task (and those that it starts) a new request id for the duration of the block."""
    ident = f"{_ids.getrandbits(32):08x}"
    token = _current.set(ident)
    try:
        yield ident
    finally:
        _current.reset(token)

"""The id of the request that is being answered: what all log lines of one request have in common."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[str | None] = ContextVar("gateway.request_id", default=None)


def request_id() -> str | None:
    """The id of the request that the running task answers, or None."""
    return _current.get()


@contextmanager
def new_request() -> Generator[str]:
    """While this is open, the running task (and those that it starts) answers a request of this new id."""
    ident = secrets.token_hex(4)
    token = _current.set(ident)
    try:
        yield ident
    finally:
        _current.reset(token)

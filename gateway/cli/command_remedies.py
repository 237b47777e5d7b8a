"""Remedies for whoever runs a command, in place of those for hosts, which call methods and open pages."""

from collections.abc import Generator
from contextlib import contextmanager

from gateway.errors import Failure, FailureCode, UnknownResource, UnknownTool, UpstreamUnavailable

_SLOW = frozenset({FailureCode.START_TIMEOUT, FailureCode.CONNECT_TIMEOUT, FailureCode.TIMED_OUT})
"""Failures of which only that too much time has passed is known, until `doctor` looks into them."""

_DOCTOR = "`mcp-gateway doctor` finds out more"


@contextmanager
def command_remedies(*, configured: bool) -> Generator[None]:
    """Context manager: errors get the remedy of the command line. `configured`: `doctor` can check the upstreams."""
    try:
        yield
    except UnknownTool as error:
        raise UnknownTool(error.message, remedy="`mcp-gateway tools --app` lists the names") from None
    except UnknownResource as error:
        remedy = "`mcp-gateway tools --app` lists the pages"
        raise UnknownResource(error.message, uri=error.uri, remedy=remedy) from None
    except UpstreamUnavailable as error:
        if more := doctor_knows(error.failure, configured=configured):
            error.remedy = f"{error.remedy}; {more}" if error.remedy else more
        raise


def doctor_knows(failure: Failure | None, *, configured: bool) -> str | None:
    """Name `doctor` for an upstream that did not answer in time; None for other failures, which say what is wrong."""
    return _DOCTOR if configured and failure is not None and failure.code in _SLOW else None

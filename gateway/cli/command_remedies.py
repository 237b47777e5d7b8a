"""Remedies for whoever runs a command, in place of those for hosts, which call methods and open pages."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from gateway.cli.terminal import remark
from gateway.config.schema import UpstreamSettings
from gateway.errors import ApprovalNeeded, Failure, FailureCode, UnknownResource, UnknownTool, UpstreamUnavailable
from gateway.upstream.remedies import full_remedy

_SLOW = frozenset({FailureCode.START_TIMEOUT, FailureCode.CONNECT_TIMEOUT, FailureCode.TIMED_OUT})
"""Failures of which only that too much time has passed is known, until `doctor` looks into them."""

_DOCTOR = "`mcp-gateway doctor` finds out more"


@contextmanager
def command_remedies(upstreams: Mapping[str, UpstreamSettings], *, configured: bool) -> Generator[None]:
    """Context manager: errors get the remedy of the command line.

    `configured`: `upstreams` are those of a file, which can be edited and which `doctor` can check.
    """
    try:
        yield
    except UnknownTool as error:
        raise UnknownTool(error.message, remedy="`mcp-gateway tools --app` lists the names") from None
    except ApprovalNeeded as error:
        raise ApprovalNeeded(error.message, rule=error.rule, remedy="--approve approves this call") from None
    except UnknownResource as error:
        remedy = "`mcp-gateway tools --app` lists the pages"
        raise UnknownResource(error.message, uri=error.uri, remedy=remedy) from None
    except UpstreamUnavailable as error:
        raise _explained(error, upstreams[error.upstream], configured=configured) from None


def _explained(error: UpstreamUnavailable, settings: UpstreamSettings, *, configured: bool) -> UpstreamUnavailable:
    """Return the error with what is wrong and what to do: unlike a running gateway, a command does not try again.

    What the program said at its end is printed first.
    """
    failure = error.failure
    if failure.code is UpstreamUnavailable.usual:  # nothing has failed: it is disabled, or the wait was ended
        return error
    said = failure.details.get("stderr", "").splitlines()
    for line in said if len(said) > 1 else ():  # the failure names a single line itself
        remark(f"stderr: {line}")
    known = full_remedy(failure, error.upstream, settings) if configured else failure.remedy
    remedy = "; ".join(filter(None, (known, doctor_knows(failure, configured=configured))))
    words = f"is not available: {failure.message}"
    return UpstreamUnavailable(error.upstream, words, remedy=remedy or None, failure=failure)


def doctor_knows(failure: Failure | None, *, configured: bool) -> str | None:
    """Name `doctor` for an upstream that did not answer in time; None for other failures, which say what is wrong."""
    return _DOCTOR if configured and failure is not None and failure.code in _SLOW else None

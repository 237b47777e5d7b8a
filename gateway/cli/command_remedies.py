"""Remedies for whoever runs a command, in place of those for hosts, which call methods and open pages."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gateway.cli.given_options import GivenOptions
from gateway.cli.progress import standing_words
from gateway.cli.terminal import remark
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.store.handles import URI_SCHEME
from gateway.core.model.grant import SEPARATOR
from gateway.core.tools.catalogue.choose_tools import ToolChoice
from gateway.errors import ApprovalNeeded, Failure, FailureCode, UnknownResource, UnknownTool, UpstreamUnavailable
from gateway.upstream.remedies import full_remedy

if TYPE_CHECKING:
    from gateway.upstream import Upstream

_SLOW = frozenset({FailureCode.START_TIMEOUT, FailureCode.CONNECT_TIMEOUT, FailureCode.TIMED_OUT})
"""Failures of which only that too much time has passed is known, until `doctor` looks into them."""

NOT_SHARED = (
    "a running gateway is not used, and what one keeps in memory is there alone: "
    '[store] url = "file:///..." lets both see it'
)
"""Why a command that starts a gateway of its own knows no handle of a running one, and what lets it."""


@contextmanager
def command_remedies(upstreams: Mapping[str, UpstreamSettings], given: GivenOptions, tool: str = "") -> Generator[None]:
    """Context manager: errors get the remedy of the command line, with the options that the command was given.

    `tool` is the one that the command calls, if it calls one.
    """
    try:
        yield
    except UnknownTool as error:
        remedies = (_left_out(tool, upstreams), f"`{given.command('tools')}` lists the names")
        raise UnknownTool(error.message, remedy="; ".join(filter(None, remedies))) from None
    except ApprovalNeeded as error:
        raise ApprovalNeeded(error.message, rule=error.rule, remedy="--approve approves this call") from None
    except UnknownResource as error:
        remedy = f"`{given.command('tools', '--app')}` lists the pages"
        if error.uri is not None and error.uri.startswith(URI_SCHEME):
            remedy = f"{NOT_SHARED}; `mcp-gateway content get HANDLE` reads it"
        raise UnknownResource(error.message, uri=error.uri, remedy=remedy) from None
    except UpstreamUnavailable as error:
        raise _explained(error, upstreams[error.upstream], given) from None


def _left_out(tool: str, upstreams: Mapping[str, UpstreamSettings]) -> str | None:
    """Say of a tool that the configuration would leave it out; None if it would not."""
    name, _, tool_there = tool.partition(SEPARATOR)
    if not tool_there or name not in upstreams:
        return None
    selection = upstreams[name].tools
    include, exclude = tuple(selection.include), tuple(selection.exclude)
    if ToolChoice(include, exclude).has(tool_there):
        return None
    key = "exclude" if ToolChoice(include, ()).has(tool_there) else "include"
    return f"{key} of [upstreams.{name}.tools] leaves a tool of this name out"


def _explained(error: UpstreamUnavailable, settings: UpstreamSettings, given: GivenOptions) -> UpstreamUnavailable:
    """Return the error with what is wrong and what to do: unlike a running gateway, a command does not try again.

    What the program said at its end is printed first.
    """
    failure = error.failure
    if failure.code is UpstreamUnavailable.usual:  # nothing has failed: it is disabled, or the wait was ended
        return error
    said = failure.details.get("stderr", "").splitlines()
    for line in said if len(said) > 1 else ():  # the failure names a single line itself
        remark(f"stderr: {line}")
    known = failure.remedy
    if given.is_configured:
        known = full_remedy(failure, error.upstream, settings, login=given.command("login", error.upstream))
    remedy = "; ".join(filter(None, (known, _doctor_knows(failure, given))))
    words = f"is not available: {failure.message}"
    return UpstreamUnavailable(error.upstream, words, remedy=remedy or None, failure=failure)


def why_missing(upstream: "Upstream", outcome: str | None, given: GivenOptions) -> str:
    """Return why an upstream is not available, with what to do; `outcome` is that of its first start, if it ended."""
    failure = upstream.failure
    if failure is not None and failure.code is FailureCode.LOGIN_REQUIRED and given.is_configured:
        return f"{failure.message} ({given.command('login', upstream.name)})"
    return "; ".join(filter(None, (outcome or standing_words(upstream), _doctor_knows(failure, given))))


def _doctor_knows(failure: Failure | None, given: GivenOptions) -> str | None:
    """Name `doctor` for an upstream that did not answer in time; None for other failures, which say what is wrong."""
    if failure is None or failure.code not in _SLOW or not given.is_configured:
        return None
    return f"`{given.command('doctor')}` finds out more"

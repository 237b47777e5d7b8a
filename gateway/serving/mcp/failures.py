"""The gateway's errors as hosts get them: one table for every transport.

A failed `tools/call` becomes a result with `isError` whose text names cause and remedy, so that the model can read it
and tell the user. An invalid request, and an upstream's own JSON-RPC error, stay protocol errors.
"""

import logging
from typing import Any, cast

from mcp.shared.exceptions import MCPError

from gateway.core.model.json_safe import to_json_safe
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.model.wire import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    OVERLOADED,
    RESOURCE_NOT_FOUND,
    text_result,
)
from gateway.errors import (
    AuditUnavailable,
    ContentError,
    ExpiredHandle,
    FileRefused,
    GatewayError,
    InvalidRequest,
    MediaError,
    NotAllowed,
    Overloaded,
    ProfileError,
    ScopeMissing,
    TooManyCalls,
    UnknownHandle,
    UnknownMethod,
    UnknownResource,
    UpstreamBusy,
    UpstreamError,
    UpstreamRefused,
)
from gateway.telemetry import request_id

CODES: tuple[tuple[type[GatewayError], int], ...] = (
    (UnknownMethod, METHOD_NOT_FOUND),
    (UnknownResource, RESOURCE_NOT_FOUND),
    (UnknownHandle, RESOURCE_NOT_FOUND),
    (ExpiredHandle, RESOURCE_NOT_FOUND),
    (InvalidRequest, INVALID_PARAMS),
    (ProfileError, INVALID_PARAMS),
    (Overloaded, OVERLOADED),
    (UpstreamBusy, OVERLOADED),
    (GatewayError, INTERNAL_ERROR),
)
"""JSON-RPC codes by class of error; the first class that matches counts. `UpstreamRefused` has its own code."""

TOLD_TO_THE_MODEL: tuple[type[GatewayError], ...] = (
    UpstreamError,
    ContentError,
    MediaError,
    ScopeMissing,
    TooManyCalls,
    NotAllowed,
    AuditUnavailable,
)
"""Failures of a valid call, which are answered with a result, not a protocol error."""

RETRY_AFTER = "retryAfter"
"""Key of the data of an `OVERLOADED` error: the whole seconds after which to try again."""

_logger = logging.getLogger(__name__)


def as_result(method: str, error: GatewayError) -> dict[str, Any] | None:
    """Return a result that tells the model of `error`, or None if the host must be told instead (`as_error`)."""
    if (
        method != "tools/call"
        or isinstance(error, UpstreamRefused | UpstreamBusy)
        or not isinstance(error, TOLD_TO_THE_MODEL)
    ):
        return None
    return text_result(str(error), is_error=True)


def as_error(error: GatewayError, revision: str) -> MCPError:
    """Return the JSON-RPC error for a host of `revision`. For an upstream's refusal it is the upstream's own."""
    if isinstance(error, UpstreamRefused):
        return safe_error(_code_of_era(error.code, revision), error.wire_message, error.data)
    code = next(code for kind, code in CODES if isinstance(error, kind))
    data: dict[str, Any] | None = None
    if isinstance(error, UnknownResource) and error.uri is not None:
        data = {"uri": error.uri}
    elif isinstance(error, FileRefused) and error.data is not None:
        data = dict(error.data)
    elif isinstance(error, Overloaded | UpstreamBusy):
        data = {RETRY_AFTER: error.retry_after}
    return safe_error(_code_of_era(code, revision), str(error), data)


def safe_error(code: int, message: str, data: Any = None) -> MCPError:
    """Return a JSON-RPC error that every transport can write, whatever its content."""
    try:
        return MCPError(code, to_json_safe(message), to_json_safe(data))
    except TypeError:
        _logger.exception("the data of an error is not JSON")
        return MCPError(code, to_json_safe(message))


def unexpected(method: str, error: Exception) -> MCPError:
    """Log an unexpected error in full, and return an error for the host that has only its id in the log."""
    _logger.error("unexpected error while answering %s", method, exc_info=error)
    ident = request_id()
    told = "Internal error of the gateway; its log has the details"
    return MCPError(INTERNAL_ERROR, told, None if ident is None else {"requestId": ident})


def sole_gateway_error(error: Exception) -> GatewayError | None:
    """Return `error` if it is a GatewayError, or the one that a task group wrapped; None for anything else."""
    while isinstance(error, ExceptionGroup):
        group = cast("ExceptionGroup[Exception]", error)
        if len(group.exceptions) != 1:
            return None
        error = group.exceptions[0]
    return error if isinstance(error, GatewayError) else None


def _code_of_era(code: int, revision: str) -> int:
    return INVALID_PARAMS if code == RESOURCE_NOT_FOUND and revision in MODERN_REVISIONS else code

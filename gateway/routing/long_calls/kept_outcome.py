"""The outcome of a long call as JSON, from which another replica answers once the one that ran the call is gone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from gateway.core.model.json_values import as_object, as_text
from gateway.errors import GatewayError, InvalidRequest, ProfileError, UpstreamError, UpstreamRefused
from gateway.routing.long_calls.long_call import LongCall

_REFUSED, _INVALID, _FAILED = "refused", "invalid", "failed"


class KeptOutcome(NamedTuple):
    """A result for a host, or else an error, of a call to a tool of an upstream. The times are in ISO 8601."""

    upstream: str
    tool: str
    created: str
    changed: str
    result: Mapping[str, Any] | None
    error: GatewayError | None


def outcome_json(call: LongCall) -> dict[str, Any]:
    """Return what `read_outcome` needs of a call that is over."""
    return {
        "upstream": call.audit.upstream,
        "tool": call.audit.tool,
        "created": call.created.isoformat(timespec="seconds"),
        "changed": call.changed.isoformat(timespec="seconds"),
        "result": call.result,
        "error": None if call.error is None else _error_json(call.error),
    }


def read_outcome(said: Mapping[str, Any]) -> KeptOutcome:
    """Return an outcome that `outcome_json` has written."""
    upstream, tool = as_text(said.get("upstream")) or "", as_text(said.get("tool")) or ""
    created, changed = as_text(said.get("created")) or "", as_text(said.get("changed")) or ""
    if said.get("error") is None:
        return KeptOutcome(upstream, tool, created, changed, as_object(said.get("result")), None)
    return KeptOutcome(upstream, tool, created, changed, None, _error(as_object(said.get("error")), upstream))


def _error_json(error: Exception) -> dict[str, Any]:
    if isinstance(error, UpstreamRefused):
        return {"kind": _REFUSED, "code": error.code, "message": error.wire_message, "data": error.data}
    if not isinstance(error, GatewayError):
        return {"kind": _FAILED, "message": "Internal error of the gateway; its log has the details"}
    kind = _INVALID if isinstance(error, InvalidRequest | ProfileError) else _FAILED
    return {"kind": kind, "message": error.message, "remedy": error.remedy}


def _error(said: Mapping[str, Any], upstream: str) -> GatewayError:
    message, remedy = as_text(said.get("message")) or "it failed", as_text(said.get("remedy"))
    if said.get("kind") == _REFUSED:
        code = said.get("code")
        return UpstreamRefused(upstream, code if isinstance(code, int) else 0, message, said.get("data"))
    if said.get("kind") == _INVALID:
        return InvalidRequest(message, remedy=remedy)
    return UpstreamError(upstream, message.removeprefix(f"upstream {upstream!r}: "), remedy=remedy)

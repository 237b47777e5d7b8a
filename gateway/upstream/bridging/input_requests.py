"""The three requests that a server may send to a host, in the forms of both eras."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gateway.core.model.caller import Caller
from gateway.core.model.json_values import as_object, is_dict, is_object
from gateway.upstream.connection.host_requests import ASKED, ELICITATION

INPUT_REQUIRED = "input_required"

RETRYABLE = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The methods whose results may ask for input (2026-07-28, patterns/mrtr.mdx)."""


def can_answer(caller: Caller, method: str, params: Mapping[str, Any]) -> bool:
    """Whether the host declared that it answers this kind of request."""
    declared = caller.capabilities.get(ASKED[method]) if method in ASKED else None
    if not isinstance(declared, Mapping):
        return False
    if method != ELICITATION:
        return True
    # A host that declares no mode supports forms; one that declares modes supports only those.
    return "url" in declared if params.get("mode") == "url" else "form" in declared or "url" not in declared


def for_modern(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the params of a handshake upstream's request to 2026-07-28: without `_meta` of that hop, and without the
    id of an elicitation, which was only used by the notification of its end.
    """
    kept = {key: value for key, value in params.items() if key not in ("_meta", "task")}
    if method == ELICITATION:
        kept.pop("elicitationId", None)
    return kept


def for_handshake(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the params of an input request to the handshake revisions, in which a URL elicitation needs an id."""
    given = dict(params)
    if method == ELICITATION and given.get("mode") == "url" and "elicitationId" not in given:
        digest = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()
        given["elicitationId"] = f"gateway-{digest[:24]}"
    return given


def input_requests(result: Mapping[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the input requests in a result: method and params by key. Malformed entries are left out."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    requests = result.get("inputRequests")
    for key, request in requests.items() if is_object(requests) else ():
        entry = as_object(request)
        method, params = entry.get("method"), entry.get("params")
        if isinstance(method, str):
            found[key] = (method, params if is_dict(params) else {})
    return found

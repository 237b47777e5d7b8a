"""Asking a host: the three requests that a server may have for it, in the form that its revision knows."""

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
    """Whether the host declared that it answers such a request."""
    declared = caller.capabilities.get(ASKED[method]) if method in ASKED else None
    if not isinstance(declared, Mapping):
        return False
    if method != ELICITATION:
        return True
    # A form is what a host that names no mode means; one that names modes means those.
    return "url" in declared if params.get("mode") == "url" else "form" in declared or "url" not in declared


def for_modern(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params of a handshake upstream's request as 2026-07-28 has them: without `_meta` of that hop, and without the
    id of an elicitation, which only the notification of its end used.
    """
    kept = {key: value for key, value in params.items() if key not in ("_meta", "task")}
    if method == ELICITATION:
        kept.pop("elicitationId", None)
    return kept


def for_handshake(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params of an input request as the handshake revisions have them; a url elicitation there needs an id."""
    given = dict(params)
    if method == ELICITATION and given.get("mode") == "url" and "elicitationId" not in given:
        digest = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode()).hexdigest()
        given["elicitationId"] = f"gateway-{digest[:24]}"
    return given


def input_requests(result: Mapping[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """What a result asks for: method and params by key. Malformed entries are left out."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    requests = result.get("inputRequests")
    for key, request in requests.items() if is_object(requests) else ():
        entry = as_object(request)
        method, params = entry.get("method"), entry.get("params")
        if isinstance(method, str):
            found[key] = (method, params if is_dict(params) else {})
    return found

"""Finalize a result for a protocol revision: add the fields that it requires, and remove those that it cannot carry.

The SDK's own filter would do this, but drop every field that it does not know. So results bypass it, and the few fields
that differ between the eras are set here. The profile decides which kinds of blocks a revision has.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from gateway.core.model.approval_mark import unforged
from gateway.core.model.json_size import compact_json
from gateway.core.model.json_values import as_object, is_object
from gateway.core.model.revisions import MODERN_REVISIONS
from gateway.core.model.wire import SERVER_INFO, SUBSCRIPTION_ID
from gateway.core.tools.catalogue.hints import lifetime

CACHED = frozenset(
    {
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "skills/list",
        "skills/get",
        "server/discover",
    }
)
"""The methods whose results say how long, and for whom, they may be cached (2026-07-28)."""

_OF_A_RETRY = ("inputResponses", "requestState")
"""Params that are not part of a cache's key (specification, server/utilities/caching, "Cache Key")."""

_ONLY_MODERN = ("resultType", "ttlMs", "cacheScope")


def finalize_result(
    method: str,
    result: Mapping[str, Any],
    revision: str,
    *,
    server_info: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the result of `method` in the form for a host of `revision`; `server_info` is the gateway's own.

    For 2026-07-28 it has `resultType`, the cache fields if required, and the gateway's server info in `_meta` in place
    of the upstream's. The scope is always `private`, since results depend on the host. The response to a retry
    (`params` with `inputResponses` or `requestState`) must not be cached. For the handshake revisions it has none of
    these, and no structured content (or output schema) that is not an object.
    """
    finished = dict(unforged(result))
    if revision in MODERN_REVISIONS:
        if any(key in (params or {}) for key in _OF_A_RETRY):
            finished.pop("ttlMs", None)
        return _for_modern(method, finished, server_info)
    return _for_handshake(method, finished)


def _for_modern(method: str, result: dict[str, Any], server_info: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(result.get("resultType"), str):
        result["resultType"] = "complete"
    if method in CACHED and result["resultType"] == "complete":
        result["ttlMs"] = lifetime(result.get("ttlMs")) or 0
        result["cacheScope"] = "private"
    if server_info is not None:
        result["_meta"] = {**_meta(result), SERVER_INFO: dict(server_info)}
    return result


def _for_handshake(method: str, result: dict[str, Any]) -> dict[str, Any]:
    for field in _ONLY_MODERN:
        result.pop(field, None)
    meta = _meta(result)
    if SERVER_INFO in meta or SUBSCRIPTION_ID in meta:
        kept = {key: value for key, value in meta.items() if key not in (SERVER_INFO, SUBSCRIPTION_ID)}
        result.pop("_meta")
        if kept:
            result["_meta"] = kept
    if method == "tools/call":
        return _without_bare_values(result)
    if method == "tools/list":
        return _without_bare_schemas(result)
    return result


def _without_bare_values(result: dict[str, Any]) -> dict[str, Any]:
    """Move structured content that is not an object into a text, unless a text already has it (before 2026-07-28)."""
    if "structuredContent" not in result or isinstance(result["structuredContent"], Mapping):
        return result
    value = result.pop("structuredContent")
    content = _objects(result.get("content"))
    if value is not None and not any(_says(block, value) for block in content):
        result["content"] = [*content, {"type": "text", "text": compact_json(value)}]
    return result


def _says(block: Any, value: Any) -> bool:
    if not is_object(block):
        return False
    text = block.get("text")
    try:
        return isinstance(text, str) and json.loads(text) == value
    except (ValueError, RecursionError):
        return False


def _without_bare_schemas(result: dict[str, Any]) -> dict[str, Any]:
    """Remove output schemas that are not for objects: clients of these revisions refuse a whole list with one."""
    tools = _objects(result.get("tools"))
    if any(_has_bare_schema(tool) for tool in tools):
        result["tools"] = [
            {key: value for key, value in tool.items() if key != "outputSchema"} if _has_bare_schema(tool) else tool
            for tool in tools
        ]
    return result


def _has_bare_schema(tool: Any) -> bool:
    if not is_object(tool) or "outputSchema" not in tool:
        return False
    schema = tool["outputSchema"]
    return not is_object(schema) or schema.get("type") != "object"


def _meta(result: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_object(result.get("_meta"))


def _objects(value: Any) -> list[Any]:
    return list(cast("list[Any]", value)) if isinstance(value, (list, tuple)) else []

"""Serve the revision after the newest one (`core.results.output_variants.REVISION`) as a host that chooses outputs.

Nothing else of that revision is known yet, so its requests are answered as those of 2026-07-28, by the SDK's checks for
these: here, header and envelope are rewritten before anything reads them, and the request is marked. Tasks are left
out: their results come later, when nobody remembers what was chosen.
"""

from functools import partial
from typing import Any

from pydantic_core import from_json, to_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.core.model.json_values import as_object, is_dict
from gateway.core.model.revisions import NEWEST_MODERN
from gateway.core.model.wire import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from gateway.core.results.output_variants import REVISION
from gateway.serving.mcp.bodies import read_body, replayed
from gateway.serving.mcp.handshake import TASKS_EXTENSION
from gateway.serving.mcp.request_caller import CHOOSES_SCOPE

_VERSION_HEADER = "mcp-protocol-version"


class NextRevisionMiddleware:
    """ASGI wrapper that lets requests of `REVISION` pass as those of the newest revision, with a mark in their scope.

    A request whose header and body do not both name it stays as it is, and is refused behind this as any other.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST" or Headers(scope=scope).getlist(_VERSION_HEADER) != [REVISION]:
            return await self._app(scope, receive, send)
        body, arrived = await read_body(receive, self._max_body_bytes)
        rewritten = None if body is None else _rewritten(body)
        if rewritten is None:
            return await self._app(scope, partial(replayed, arrived, receive), send)
        del body
        arrived.clear()
        arrived.append({"type": "http.request", "body": rewritten, "more_body": False})
        marked = {**scope, "headers": list(scope["headers"]), CHOOSES_SCOPE: True}
        headers = MutableHeaders(scope=marked)
        headers[_VERSION_HEADER] = NEWEST_MODERN
        headers["content-length"] = str(len(rewritten))
        return await self._app(marked, partial(replayed, arrived, receive), send)


def _rewritten(body: bytes) -> bytes | None:
    """Return a request with the envelope of the newest revision; None if it has not that of `REVISION`."""
    try:
        message = from_json(body)
    except ValueError:
        return None
    params = message.get("params") if is_dict(message) else None
    meta = params.get("_meta") if is_dict(params) else None
    if not is_dict(meta) or meta.get(PROTOCOL_VERSION) != REVISION:
        return None
    meta[PROTOCOL_VERSION] = NEWEST_MODERN
    if is_dict(capabilities := meta.get(CLIENT_CAPABILITIES)):
        meta[CLIENT_CAPABILITIES] = _without_tasks(capabilities)
    return to_json(message)


def _without_tasks(capabilities: dict[str, Any]) -> dict[str, Any]:
    extensions = as_object(capabilities.get("extensions"))
    if TASKS_EXTENSION not in extensions:
        return capabilities
    return {**capabilities, "extensions": {key: value for key, value in extensions.items() if key != TASKS_EXTENSION}}

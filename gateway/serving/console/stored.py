"""The store in the console: what is kept for whom, drawn, saved and removed."""

import base64
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from gateway.config.moments import moment_text
from gateway.content.store import Stored, fetch_bytes
from gateway.core.model.media_types import family
from gateway.core.results.lift_result import lift
from gateway.errors import GatewayError
from gateway.serving.console.console import Console
from gateway.serving.console.media import INERT
from gateway.serving.console.parts import Part, envelope_parts
from gateway.serving.console.responses import as_json
from gateway.serving.console.views import View, number_in
from gateway.serving.content.content_headers import headers_of

PAGE = 50
MOST_DRAWN = 24 * 1024 * 1024
"""Bytes of content above which it is only saved, not drawn."""
_LONGEST_OWNER = 200
_MOST_OWNERS = 200


def known_owners(console: Console) -> list[str]:
    """Return the principals whose content may be here: the operator, those with access, and those who have called.

    A store does not tell its owners: in one that lasts, they are hashed.
    """
    access = console.gateway.settings.access
    called = (call.principal for call in console.history.newest_first())
    owners = dict.fromkeys([console.operation.principal, "local", *access.principals(), *called])
    return [owner for owner in owners if owner][:_MOST_OWNERS]


async def _stored(console: Console, request: Request) -> Mapping[str, Any]:
    """Return up to 50 pieces that are `kept` for an `owner`, the newest first, `from` a number on.

    With the `owners` that are known, how much the whole store holds, and its limits.
    """
    store, settings = console.gateway.store, console.gateway.settings.store
    owner, start = _owner(console, request), number_in(request, "from") or 0
    kept = (await store.list(owner=owner))[::-1]
    size, pieces = store.usage
    return {
        "url": store.where,
        "bytes": size,
        "pieces": pieces,
        "max_bytes": settings.max_bytes,
        "max_bytes_per_owner": settings.max_bytes_per_owner,
        "expires": settings.expires,
        "owner": owner,
        "owners": known_owners(console),
        "owner_bytes": sum(one.size for one in kept),
        "count": len(kept),
        "from": start,
        "next": start + PAGE if start + PAGE < len(kept) else None,
        "kept": [_row(one, settings.expires) for one in kept[start : start + PAGE]],
    }


def _owner(console: Console, request: Request) -> str:
    return request.query_params.get("owner", "")[:_LONGEST_OWNER] or console.operation.principal


def _row(stored: Stored, lives: float) -> dict[str, Any]:
    return {
        "handle": stored.handle,
        "media_type": stored.media_type,
        "kind": stored.kind,
        "size": stored.size,
        "name": stored.name,
        "origin": stored.origin,
        "since": moment_text(stored.expires_at - lives),
        "expires": moment_text(stored.expires_at),
    }


async def _piece(console: Console, request: Request) -> Mapping[str, Any]:
    """Return what is known of one piece, with its `parts` to draw; null if it is too large for that."""
    store, owner = console.gateway.store, _owner(console, request)
    stored = await store.metadata(request.path_params["handle"], owner=owner)
    row = {**_row(stored, console.gateway.settings.store.expires), "owner": owner, "sha256": stored.sha256}
    return {**row, "parts": await _drawn(console, stored, owner) if stored.size <= MOST_DRAWN else None}


async def _drawn(console: Console, stored: Stored, owner: str) -> Sequence[Part]:
    content = await fetch_bytes(console.gateway.store, stored.handle, owner=owner, limit=MOST_DRAWN)
    is_text = family(stored.media_type) == "text" or stored.media_type.endswith(("json", "xml", "yaml"))
    if is_text and stored.media_type != "image/svg+xml":
        block: dict[str, Any] = {"type": "text", "text": content.decode("utf-8", "replace")}
    else:
        resource = {"uri": stored.uri, "mimeType": stored.media_type, "blob": base64.b64encode(content).decode("ascii")}
        block = {"type": "resource", "resource": resource}
    return envelope_parts(lift({"content": [block]}), console.shelf)


async def _remove(console: Console, request: Request) -> Mapping[str, Any]:
    """Remove one piece now. Hosts that know its handle cannot read it any more."""
    handle = request.path_params["handle"]
    await console.gateway.store.delete(handle, owner=_owner(console, request))
    return {"handle": handle, "owner": _owner(console, request)}


def store_routes(console: Console) -> list[BaseRoute]:
    """Return the route of the bytes themselves, to be saved."""

    async def save(request: Request) -> Response:
        store, owner, handle = console.gateway.store, _owner(console, request), request.path_params["handle"]
        try:
            stored = await store.metadata(handle, owner=owner)
        except GatewayError as error:
            return as_json({"error": error.message, "remedy": error.remedy}, 404)

        async def chunks() -> AsyncGenerator[bytes]:
            async with store.open(handle, owner=owner) as opened:
                async for chunk in opened:
                    yield chunk

        told = headers_of(stored)
        _, _, name = told["Content-Disposition"].partition(";")
        headers = {
            **INERT,
            "Cache-Control": "no-store",
            "Content-Disposition": f"attachment;{name}",
            "Content-Length": str(stored.size),
        }
        return StreamingResponse(chunks(), headers=headers, media_type="application/octet-stream")

    return [Route("/api/store/{handle}/content", save)]


VIEWS = (
    View("/store", "store.html", _stored, "store", "Store"),
    View("/store/{handle}", "stored.html", _piece, "store"),
    View("/store/{handle}/remove", "stored_removed.html", _remove, "store", method="POST"),
)

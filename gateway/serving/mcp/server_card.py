"""The server card and the AI catalog: documents that say what this server is and where, before anybody connects.

Built to SEP-2127 at 72018734 (2026-08-21) and to `docs/discovery.md` and `schema.ts` of
https://github.com/modelcontextprotocol/experimental-ext-server-card at 8924e086 (2026-07-24). Neither names a tool.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.config.experimental_settings import ServerCardSettings
from gateway.content.links.base_url import BASE_SCOPE, Bases

CARD_PATH = "/mcp/server-card"
CATALOG_PATH = "/.well-known/ai-catalog.json"

_CARD_TYPE = "application/mcp-server-card+json"
_CATALOG_TYPE = "application/ai-catalog+json"
_SCHEMA = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
_OPEN_TO_PAGES = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Content-Type, If-None-Match",
    "Access-Control-Expose-Headers": "ETag",
}


class Discovery(NamedTuple):
    """The two documents of a server of this version, which speaks these revisions, as JSON by its base URL."""

    settings: ServerCardSettings
    version: str
    revisions: Sequence[str]

    def card(self, base: str) -> dict[str, Any]:
        """Return the server card."""
        remote = {"type": "streamable-http", "url": f"{base}/mcp", "supportedProtocolVersions": list(self.revisions)}
        titled = {} if self.settings.title is None else {"title": self.settings.title}
        return {
            "$schema": _SCHEMA,
            "name": self.settings.name,
            "version": self.version,
            "description": self.settings.description,
            **titled,
            "remotes": [remote],
        }

    def catalog(self, base: str) -> dict[str, Any]:
        """Return the AI catalog of a domain with this server alone."""
        namespace, _, name = self.settings.name.partition("/")
        publisher = ".".join(reversed(namespace.split(".")))
        entry = {"identifier": f"urn:air:{publisher}:mcp:{name}", "type": _CARD_TYPE, "url": f"{base}{CARD_PATH}"}
        return {"specVersion": "1.0", "entries": [entry]}


def discovery_routes(discovery: Discovery, public_url: str | None) -> list[BaseRoute]:
    """Return the routes of both documents. They begin with `public_url`, else with the address of the request."""

    def route(path: str, media_type: str, document: Callable[[str], dict[str, Any]]) -> Route:
        def answer(request: Request) -> Response:
            base = (public_url or request.scope[BASE_SCOPE]).rstrip("/")
            return _document(request, document(base), media_type, is_public=discovery.settings.public)

        return Route(path, answer, methods=["GET"])

    card = route(CARD_PATH, _CARD_TYPE, discovery.card)
    return [card, route(CATALOG_PATH, _CATALOG_TYPE, discovery.catalog)]


class PublicDocuments:
    """ASGI wrapper that answers requests for documents that anybody may read, before any token or origin is checked."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute], bases: Bases) -> None:
        self._app = app
        self._routes = routes
        self._root_path = bases.root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            asked = {**scope, "path": scope["path"].removeprefix(self._root_path)}
            for route in self._routes:
                match, found = route.matches(asked)
                if match is Match.FULL:
                    return await route.handle({**asked, **found}, receive, send)
                if match is Match.PARTIAL and scope["method"] == "OPTIONS":
                    return await Response(status_code=204, headers=_OPEN_TO_PAGES)(scope, receive, send)
        return await self._app(scope, receive, send)


def _document(request: Request, document: dict[str, Any], media_type: str, *, is_public: bool) -> Response:
    body = json.dumps(document, ensure_ascii=False).encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "X-Content-Type-Options": "nosniff"}
    if is_public:
        headers |= {"Cache-Control": "public, max-age=3600", **_OPEN_TO_PAGES}
    else:
        headers["Cache-Control"] = "private, max-age=3600"
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media_type, headers=headers)

"""What hosts without a token are told: where to get one (RFC 9728), and what for."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from gateway.content.links.base_url import BASE_SCOPE
from gateway.serving.access.identified import Fault
from gateway.serving.access.tokens import Access

WELL_KNOWN = "/.well-known/oauth-protected-resource"

_ENDPOINT = re.compile(r"/(?:mcp|sse)(?:/[A-Za-z0-9._-]+){0,2}")
_ERRORS: dict[Fault, str] = {"wrong": "invalid_token", "expired": "invalid_token", "insufficient": "insufficient_scope"}


def resource_metadata(access: Access, public_url: str | None) -> list[BaseRoute]:
    """Return the routes of the metadata, which need no token: for the gateway as a whole, and for each endpoint."""

    def describe(request: Request) -> Response:
        base = public_url or request.scope[BASE_SCOPE]
        path = f"/{request.path_params.get('resource', '')}".removeprefix(urlsplit(base).path.rstrip("/")).rstrip("/")
        if not access.authorization_servers or not (path == "" or _ENDPOINT.fullmatch(path)):
            return JSONResponse({"error": "there is no such resource, or it needs no authorization server"}, 404)
        described = {
            "resource": base.rstrip("/") + path,
            "authorization_servers": access.authorization_servers,
            "bearer_methods_supported": ["header"],
        }
        if access.all_scopes:
            described["scopes_supported"] = access.all_scopes
        return JSONResponse(described, headers={"Cache-Control": "no-store"})

    return [Route(WELL_KNOWN, describe), Route(WELL_KNOWN + "/{resource:path}", describe)]


def challenge(access: Access, base: str, path: str, fault: Fault, scopes: Iterable[str] = ()) -> str:
    """Return the value of `WWW-Authenticate` for a request that is not authorised.

    `base` is the gateway's URL, as hosts know it, `path` that of the request; `scopes` are those to ask for.
    """
    given: dict[str, str] = {}
    if fault in _ERRORS:
        given["error"] = _ERRORS[fault]
    if access.authorization_servers:
        endpoint = path if _ENDPOINT.fullmatch(path) else "/mcp"
        given["resource_metadata"] = f"{base.rstrip('/')}{WELL_KNOWN}{endpoint}"
        if needed := " ".join(dict.fromkeys((*access.required_scopes, *scopes))):
            given["scope"] = needed
    parameters = ", ".join(f'{name}="{value}"' for name, value in given.items())
    return f"Bearer {parameters}".strip()

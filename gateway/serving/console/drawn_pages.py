"""The addresses of pages of MCP Apps, for the frames that they are drawn in: beside the console, not below it."""

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.serving.console.app_policy import permissions_policy
from gateway.serving.console.responses import as_json

if TYPE_CHECKING:
    from gateway.serving.console.console import Console

PAGES_PATH = "/console-pages"
"""Where pages are, beside the console's own path, which they must not know and whose cookie they never get (RFC 6265,
5.1.4)."""
AT_ONCE = 8
"""Requests of pages that are answered at a time."""
_KEPT = 16
_MOST_BYTES = 32 * 1024 * 1024


class DrawnPage(NamedTuple):
    """A page as it is served to its frame: the HTML, the policy that it is drawn under, and the permissions it has."""

    html: bytes
    policy: str
    permissions: tuple[str, ...] = ()


class DrawnPages:
    """The pages that were opened last, at most 16 and of 32 MiB, each at an address that only its frame is told."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, DrawnPage] = OrderedDict()
        self.calling = anyio.Semaphore(AT_ONCE)

    def put(self, drawn: DrawnPage) -> str:
        """Keep a page, and return the name that it is found by."""
        name = secrets.token_urlsafe(24)
        self._pages[name] = drawn
        while len(self._pages) > 1 and (len(self._pages) > _KEPT or self._size() > _MOST_BYTES):
            self._pages.popitem(last=False)
        return name

    def find(self, name: str) -> DrawnPage | None:
        """Return the page, if it is still here."""
        return self._pages.get(name)

    def _size(self) -> int:
        return sum(len(one.html) for one in self._pages.values())


def page_routes(console: "Console") -> list[Route]:
    """Return the routes of the pages themselves, which stand beside the console, not below it."""

    async def drawn(request: Request) -> Response:
        found = console.pages.find(request.path_params["name"])
        if found is None:
            return as_json({"error": "this page is no longer here; open its call again"}, 404)
        return Response(found.html, media_type="text/html; charset=utf-8", headers=_headers(found))

    return [Route("/{name}", drawn)]


def _headers(page: DrawnPage) -> dict[str, str]:
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": page.policy,
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": permissions_policy(page.permissions),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "X-DNS-Prefetch-Control": "off",
    }

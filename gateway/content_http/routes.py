"""The routes of content, to be served beside those of MCP."""

from starlette.routing import BaseRoute, Route

from gateway.config.schema import ContentSettings
from gateway.content_http.giving import Giving
from gateway.content_http.links import PATH, Links
from gateway.content_http.taking import Taking
from gateway.store import ContentStore


def content_routes(store: ContentStore, links: Links, settings: ContentSettings) -> list[BaseRoute]:
    """`POST /content`, and `GET /content/<handle>`."""
    return [
        Route(PATH, Taking(store, links, settings.max_upload_bytes), methods=["POST"]),
        Route(PATH + "/{handle}", Giving(store, links), methods=["GET", "HEAD"]),
    ]

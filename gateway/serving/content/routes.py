"""The HTTP routes of content, served beside those of MCP."""

from starlette.routing import BaseRoute, Route

from gateway.config.content_settings import ContentSettings
from gateway.content.links.links import PATH, Links
from gateway.content.store import ContentStore
from gateway.serving.content.download import Download
from gateway.serving.content.upload import Upload


def content_routes(store: ContentStore, links: Links, settings: ContentSettings) -> list[BaseRoute]:
    """Return the routes `POST /content` and `GET /content/<handle>`."""
    return [
        Route(PATH, Upload(store, links, settings.max_upload_bytes), methods=["POST"]),
        Route(PATH + "/{handle}", Download(store, links), methods=["GET", "HEAD"]),
    ]

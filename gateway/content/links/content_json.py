"""The JSON form of stored content: the same for uploads, the command line and the gateway's own tools."""

from typing import Any

from gateway.content.store import Stored


def content_as_json(stored: Stored, url: str | None) -> dict[str, Any]:
    """Return `handle`, `uri`, `url` (null without an HTTP side), `kind`, `media_type`, `name`, `size`, `sha256`."""
    return {
        "handle": stored.handle,
        "uri": stored.uri,
        "url": url,
        "kind": stored.kind,
        "media_type": stored.media_type,
        "name": stored.name,
        "size": stored.size,
        "sha256": stored.sha256,
    }

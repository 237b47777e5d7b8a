"""Stored content in JSON, for programs: the same for uploads, for the command line and for the gateway's own tool."""

from typing import Any

from gateway.content.store import Stored


def told(stored: Stored, url: str | None) -> dict[str, Any]:
    """`handle`, `uri`, `url` (null without an HTTP side), `kind`, `media_type`, `name`, `size` in bytes, `sha256`."""
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

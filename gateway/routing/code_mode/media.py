"""The media of scripts, as they are in the store."""

import pybase64
from anyio import to_thread

from gateway.content.store import ContentStore, Stored, fetch_bytes
from gateway.core.model import media_types
from gateway.core.model.blocks import Found
from gateway.core.model.contents import is_textual
from gateway.core.model.media_types import PixelSize
from gateway.sandbox.media import Media

_UNKNOWN_TYPE = "application/octet-stream"
_BLOCKS = frozenset({"image", "audio"})


class MediaShelf:
    """Keeps the media of one owner's scripts in the store, and reads them there."""

    def __init__(self, store: ContentStore, owner: str) -> None:
        self._store = store
        self.owner = owner

    async def keep(self, found: Found, name: str | None, origin: str | None) -> Media:
        """Store the content of a block.

        Raises:
            ContentError: it cannot be stored.
        """
        content = await to_thread.run_sync(pybase64.b64decode, found.data)
        media_type = found.media_type or _UNKNOWN_TYPE
        stored = await self._store.put(content, owner=self.owner, media_type=media_type, name=name, origin=origin)
        return _media(stored, found.pixels)

    async def open(self, handle: str) -> Media:
        """Return the media with this handle.

        Raises:
            ContentError: this owner has none, or no longer.
        """
        stored = await self._store.metadata(handle, owner=self.owner)
        beginning = await fetch_bytes(self._store, handle, owner=self.owner, end=media_types.HEAD_BYTES)
        return _media(stored, media_types.inspect(beginning).size)

    async def read(self, media: Media, limit: int) -> bytes:
        """Return the bytes.

        Raises:
            ContentTooLarge: there are more than `limit`.
            ContentError: they are no longer there.
        """
        return await fetch_bytes(self._store, media.handle, owner=self.owner, limit=limit)

    async def block(self, media: Media, limit: int) -> dict[str, object]:
        """Return the block that shows the media to a host; raises as `read` does."""
        content = await self.read(media, limit)
        if media.type not in _BLOCKS and is_textual(media.mime_type):
            try:
                return _resource(media, {"text": content.decode()})
            except UnicodeDecodeError:
                pass  # not the text that it was said to be
        data = await to_thread.run_sync(pybase64.b64encode_as_string, content)
        if media.type in _BLOCKS:
            return {"type": media.type, "data": data, "mimeType": media.mime_type}
        return _resource(media, {"blob": data})


def _resource(media: Media, content: dict[str, str]) -> dict[str, object]:
    return {"type": "resource", "resource": {"uri": media.uri, "mimeType": media.mime_type, **content}}


def _media(stored: Stored, pixels: PixelSize | None) -> Media:
    width, height = pixels or (None, None)
    return Media(
        type=stored.kind,
        mime_type=stored.media_type,
        size=stored.size,
        width=width,
        height=height,
        name=stored.name,
        handle=stored.handle,
        uri=stored.uri,
    )

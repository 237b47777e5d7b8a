"""Files that come drop by drop: the limits of all bodies end them, nothing is kept, and the place is free again."""

from contextlib import suppress
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import ByteStream
from starlette.applications import Starlette

from gateway.config.store_settings import StoreSettings
from gateway.content.links.file_transfers import FileTransfers
from gateway.content.links.links import Links
from gateway.content.store import MemoryStore
from gateway.serving.content.file_upload import file_routes
from tests.serving.http.conftest import listening

pytestmark = pytest.mark.anyio

_FORMS = {"of a known length": b"Content-Length: 1000\r\n\r\n", "in chunks": b"Transfer-Encoding: chunked\r\n\r\n"}


async def dripped(stream: ByteStream, drop: bytes) -> None:
    """Send a drop now and then, until the connection is closed."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await stream.send(drop)
            await anyio.sleep(0.1)


@pytest.mark.parametrize("form", _FORMS)
async def test_a_file_that_drips_is_given_up(form: str) -> None:
    links = Links(60, "https://files.example.com")
    links.serve_at("http://127.0.0.1:1", b"a key of at least 16 characters")
    store = MemoryStore(StoreSettings(), key=b"k" * 32)
    transfers = FileTransfers(store, links, 1_000)
    place = await transfers.answer("files/authorizeUpload", {}, "ann")
    path = urlsplit(place["upload"]["url"]).path
    drop = b"x" if form == "of a known length" else b"1\r\nx\r\n"
    app = Starlette(routes=file_routes(store, transfers))
    async with listening(app, request=1.0, bytes_per_second=1_000_000) as port:
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(f"POST {path} HTTP/1.1\r\nHost: x\r\n".encode() + _FORMS[form])
            with anyio.fail_after(30):
                await dripped(stream, drop)
        file = transfers.announced(path.rpartition("/")[2])
        assert file is not None
        with anyio.fail_after(30):
            while file.is_sending:  # noqa: ASYNC110 - the server's task ends it
                await anyio.sleep(0.05)
        assert file.handle is None
        assert not await store.list(owner="ann")

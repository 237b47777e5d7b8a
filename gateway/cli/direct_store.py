"""Direct access to the store of a configuration, for commands used while no gateway runs."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, BinaryIO

import typer

from gateway.cli.command_context import run_until_signal
from gateway.config.find_config import state_folder
from gateway.config.schema import Settings
from gateway.content.links.links import Links, link_key
from gateway.content.store import open_store
from gateway.routing.own_tools.gateway_put import file_chunks
from gateway.serving.control import protocol
from gateway.serving.control.content_owners import ContentOwners
from gateway.serving.control.contents import Contents


class DirectStore:
    """Handles the content commands as a running gateway does over its control socket. Each method opens the store."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def line(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request whose answer is one line."""
        return self._done(lambda contents: _line(contents, request, _nothing()))

    def put(self, source: BinaryIO, described: dict[str, Any]) -> dict[str, Any]:
        """Keep the content of a file, and close the file."""

        async def work(contents: Contents) -> dict[str, Any]:
            async with aclosing(file_chunks(source)) as chunks:
                return await _line(contents, {"do": "put", **described}, chunks)

        return self._done(work)

    def get(self, handle: str, owner: str | None, write: Callable[[bytes], None]) -> dict[str, Any]:
        """Write content out, and return its description."""

        async def work(contents: Contents) -> dict[str, Any]:
            request = {"do": "get", "handle": handle, "owner": owner}
            async with aclosing(contents.answer(request, _nothing())) as pieces:
                told = protocol.parse_line(await anext(pieces))["result"]
                async for piece in pieces:
                    write(piece)
            return told

        return self._done(work)

    def _done(self, work: Callable[[Contents], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        ended = run_until_signal(lambda: self._opened(work))
        if isinstance(ended, int):
            raise typer.Exit(ended)
        return ended

    async def _opened(self, work: Callable[[Contents], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        content, public_url = self._settings.content, self._settings.gateway.public_url
        links = Links(content.link_lifetime, public_url)
        if public_url is not None:  # the gateway that serves there signs with the same key
            links.serve_at(public_url, link_key(content.key, state_folder(os.environ)))
        async with open_store(self._settings.store) as store:
            owners = ContentOwners(settings=lambda: self._settings, only_http=lambda: None)
            return await work(Contents(store, links, content.max_upload_bytes, owners))


async def _line(contents: Contents, request: dict[str, Any], incoming: AsyncGenerator[bytes]) -> dict[str, Any]:
    async with aclosing(contents.answer(request, incoming)) as pieces:
        return protocol.parse_line(await anext(pieces))["result"]


async def _nothing() -> AsyncGenerator[bytes]:
    for piece in ():
        yield piece

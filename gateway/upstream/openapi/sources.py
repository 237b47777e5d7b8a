"""Where an OpenAPI document is read: a file, or a URL. Both know whether it has changed since it was read last."""

from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import httpx2

from gateway.config.setting_types import is_url
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.fact_words import plain, size_words
from gateway.errors import DocumentUnusable
from gateway.system.response_body import body_of
from gateway.upstream.authorization.ports import TokenSource
from gateway.upstream.openapi.operations import joined, origin
from gateway.upstream.transports.causes import HttpStatus
from gateway.upstream.transports.clients import challenges, client_options
from gateway.upstream.transports.send_authorized import send_request

_MOST_REDIRECTS = 5
_WATCHED_SECONDS = 2.0
"""Seconds after which a file is looked at again."""
_READ_TIMEOUT = 30.0
_ACCEPTED = (
    "application/vnd.oai.openapi+json, application/json, application/vnd.oai.openapi, application/yaml, */*;q=0.5"
)


class DocumentSource(Protocol):
    """Where a document is."""

    @property
    def base(self) -> str:
        """The URL to which the URLs in the document are relative; empty for a file."""
        ...

    @property
    def pause(self) -> float:
        """Seconds after which it is worth looking again; 0: never."""
        ...

    async def read(self) -> bytes | None:
        """Return the document; None if it has not changed since it was read last.

        Raises DocumentUnusable if it cannot be read, HttpStatus, LoginRequired, LoginFailed, and httpx2's errors.
        """
        ...


def document_source(
    settings: UpstreamSettings, client: httpx2.AsyncClient, tokens: TokenSource | None
) -> DocumentSource:
    """Return the source of an upstream's document. `client` sends the configured headers."""
    place = settings.openapi or ""
    return UrlSource(place, settings, client, tokens) if is_url(place) else FileSource(Path(place), settings)


class FileSource:
    """A document in a file, which is read again when its time or size has changed."""

    base = ""
    pause = _WATCHED_SECONDS

    def __init__(self, path: Path, settings: UpstreamSettings) -> None:
        self._path = path
        self._most = settings.operations.max_document
        self._seen: tuple[int, int] | None = None

    async def read(self) -> bytes | None:
        """Return the document (`DocumentSource.read`)."""
        return await anyio.to_thread.run_sync(self._read)

    def _read(self) -> bytes | None:
        try:
            status = self._path.stat()
            if (status.st_mtime_ns, status.st_size) == self._seen:
                return None
            if not self._path.is_file():
                raise DocumentUnusable(f"{self._path} is not a file")
            with self._path.open("rb") as file:
                content = file.read(self._most + 1)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise DocumentUnusable(f"{self._path} cannot be read: {reason}") from None
        if len(content) > self._most:
            raise _too_large(self._most)
        self._seen = status.st_mtime_ns, status.st_size
        return content


class UrlSource:
    """A document at a URL. Redirects are followed within its server, which gets the credentials only if the API is
    there too.
    """

    def __init__(
        self, url: str, settings: UpstreamSettings, client: httpx2.AsyncClient, tokens: TokenSource | None
    ) -> None:
        self.base = url
        self.pause = settings.operations.refresh
        self._settings = settings
        self._is_of_api = settings.base_url is None or origin(settings.base_url) == origin(url)
        self._client = client
        self._tokens = tokens if self._is_of_api else None
        self._marks: dict[str, str] = {}
        """The headers that ask whether the document has changed."""

    async def read(self) -> bytes | None:
        """Return the document (`DocumentSource.read`)."""
        if self._is_of_api:
            return await self._read(self._client)
        options = client_options(self._settings)
        options["headers"] = {name: options["headers"][name] for name in ("user-agent", "accept-encoding")}
        async with httpx2.AsyncClient(**options) as client:
            return await self._read(client)

    async def _read(self, client: httpx2.AsyncClient) -> bytes | None:
        response = await self._asked(client)
        try:
            if response.status_code == 304 and self._marks:
                return None
            if response.status_code in (401, 403, 407, 429) or response.status_code >= 500:
                raise HttpStatus(response.status_code, challenges(response))
            if response.status_code != 200:
                raise DocumentUnusable(
                    f"the document was answered with HTTP {response.status_code}", remedy="check the url in openapi"
                )
            content = await body_of(response, self._settings.operations.max_document)
            if content is None:
                raise _too_large(self._settings.operations.max_document)
            named = {"if-none-match": "etag", "if-modified-since": "last-modified"}
            self._marks = {name: response.headers[of] for name, of in named.items() if of in response.headers}
            return content
        finally:
            await response.aclose()

    async def _asked(self, client: httpx2.AsyncClient) -> httpx2.Response:
        url = self.base
        for _ in range(_MOST_REDIRECTS):
            request = client.build_request(
                "GET", url, headers={"accept": _ACCEPTED, **self._marks}, timeout=httpx2.Timeout(_READ_TIMEOUT)
            )
            response = await send_request(self._tokens, partial(client.send, stream=True), request)
            location = response.headers.get("location")
            if response.status_code not in (301, 302, 303, 307, 308) or not location:
                return response
            await response.aclose()
            there = joined(url, location)
            if there is None:
                raise DocumentUnusable("the document is redirected to what is not a URL")
            if origin(there) != origin(url):
                raise DocumentUnusable(
                    f"the document is redirected to another server, {plain(origin(there)[1], 100)}, which is not asked",
                    remedy="if that is meant, give that address in openapi",
                )
            url = there
        raise DocumentUnusable("the document is answered with one redirect after another")


def _too_large(most: int) -> DocumentUnusable:
    return DocumentUnusable(
        f"the document is larger than {size_words(most)}",
        remedy="leave out what is not needed, or raise operations.max_document",
    )

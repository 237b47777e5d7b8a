"""The protocol for a provider's file API, and the HTTP requests that all implementations share."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, cast

import httpx2

from gateway.core.fact_words import plain
from gateway.core.model.json_values import is_dict
from gateway.errors import ProviderFileError
from gateway.system.tls import HOOKS, ssl_context

LARGEST = 64 * 1024 * 1024
"""The default maximum size in bytes of a fetched file."""

_SECONDS = 120.0
_ERROR_CHARS = 300
_SECRET_CHARS = 12
"""Words of a header with at least this length are hidden in errors: OpenAI repeats a wrong key in its answer."""


@dataclass(frozen=True)
class FetchedFile:
    """A provider's file with its bytes. `media_type` and `name` come from the provider; None if it gives none."""

    content: bytes
    media_type: str | None = None
    name: str | None = None


class FileHost(Protocol):
    """A provider that keeps files. An async context manager: leaving it closes the connections.

    Every method raises ProviderFileError if the provider cannot be reached or refuses.
    """

    scheme: str
    """The scheme of the URIs of its files: `openai-file` for `openai-file:file-abc`."""
    lives: float
    """The seconds for which an upload can be reused; the provider keeps it somewhat longer."""

    async def upload(self, content: bytes, *, media_type: str, name: str) -> str:
        """Upload a file. Return the part of its URI after the scheme: its id or, for some providers, its address."""
        ...

    async def fetch(self, file_id: str, *, max_bytes: int = LARGEST) -> FetchedFile:
        """Fetch a file. Most providers return only files that their models made."""
        ...

    async def delete(self, file_id: str) -> None:
        """Delete the file at the provider now."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Requests:
    """Sends requests with a key to one provider. A refusal is a ProviderFileError in the provider's own words.

    `who` names the provider in errors, which never contain a key.
    """

    def __init__(self, who: str, base_url: str, headers: Mapping[str, str]) -> None:
        self._who = who
        self._base_url = base_url.rstrip("/")
        self._headers = dict(headers)
        self._secrets = [word for value in headers.values() for word in value.split() if len(word) >= _SECRET_CHARS]
        self._client = httpx2.AsyncClient(
            verify=ssl_context(),
            timeout=httpx2.Timeout(_SECONDS, connect=30.0),
            follow_redirects=False,
            event_hooks=HOOKS,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def send(self, method: str, path: str, *, foreign: bool = False, **more: Any) -> httpx2.Response:
        """Send a request and read the whole response. `path` is below the base URL, or a URL itself.

        `foreign` means a URL outside of the provider's API, where the key must not be sent.
        """
        headers = {**({} if foreign else self._headers), **cast("Mapping[str, str]", more.pop("headers", {}))}
        try:
            response = await self._client.request(method, self._address(path), headers=headers, **more)
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise self._unreachable(error) from None
        self._check(response)
        return response

    async def fetch(self, path: str, max_bytes: int, *, foreign: bool = False, redirects: int = 3) -> FetchedFile:
        """Fetch a file of at most `max_bytes`. Redirects are followed without the key."""
        try:
            headers = {} if foreign else self._headers
            async with self._client.stream("GET", self._address(path), headers=headers) as response:
                if response.is_redirect and redirects:
                    target = str(response.url.join(response.headers["location"]))
                else:
                    if response.is_error:
                        await response.aread()
                    self._check(response)
                    return await self._whole(response, max_bytes)
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise self._unreachable(error) from None
        return await self.fetch(target, max_bytes, foreign=True, redirects=redirects - 1)

    async def _whole(self, response: httpx2.Response, max_bytes: int) -> FetchedFile:
        parts, size = list[bytes](), 0
        async for part in response.aiter_bytes():
            size += len(part)
            if size > max_bytes:
                raise ProviderFileError(f"the file at {self._who} is larger than {max_bytes:,} bytes")
            parts.append(part)
        return FetchedFile(b"".join(parts), response.headers.get("content-type"))

    def _address(self, path: str) -> str:
        return f"{self._base_url}{path}" if path.startswith("/") else path

    def _check(self, response: httpx2.Response) -> None:
        if response.is_success:
            return
        remedy = "check its API key" if response.status_code in (401, 403) else None
        said = _said(response)
        for secret in self._secrets:
            said = said.replace(secret, "[hidden]")
        raise ProviderFileError(f"{self._who} answered {response.status_code}: {said}", remedy=remedy)

    def _unreachable(self, error: Exception) -> ProviderFileError:
        words = plain(str(error), _ERROR_CHARS) or type(error).__name__
        return ProviderFileError(f"{self._who} cannot be reached: {words}")

    def json(self, response: httpx2.Response) -> dict[str, Any]:
        """Return the response as a JSON object."""
        try:
            value: Any = response.json()
        except (ValueError, RecursionError):
            value = None
        if not is_dict(value):
            raise ProviderFileError(f"{self._who} answered something that is not a JSON object")
        return value

    def text_in(self, value: Any, *path: str) -> str:
        """Return the text under these keys. Raises ProviderFileError if the provider did not send it."""
        for key in path:
            value = value.get(key) if is_dict(value) else None
        if not isinstance(value, str) or not value:
            raise ProviderFileError(f"{self._who} sent no {'.'.join(path)}")
        return value


def _said(response: httpx2.Response) -> str:
    """Return the provider's error message, which is somewhere in `error`, or in `detail` (fal.ai)."""
    try:
        told: Any = json.loads(response.text)
    except (ValueError, RecursionError):
        return plain(response.text, _ERROR_CHARS) or "no details"
    if is_dict(told):
        members = told
        error: Any = members.get("error", members.get("detail", members))
        told = error.get("message", error) if is_dict(error) else error
    return plain(told if isinstance(told, str) else json.dumps(told), _ERROR_CHARS)


class Provider:
    """The base class of every FileHost: its requests, and the connections that close with it."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._requests.aclose()

"""One interface to the files of all providers, which remembers what was uploaded already."""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import anyio

from gateway.content.provider_files.anthropic import AnthropicFiles
from gateway.content.provider_files.fal import FalStorage
from gateway.content.provider_files.gemini import GeminiFiles
from gateway.content.provider_files.openai import OpenAIFiles
from gateway.content.provider_files.provider import LARGEST, FetchedFile, FileHost
from gateway.core.model.media_types import extension
from gateway.errors import ProviderFileError

UPLOAD_ABOVE = 1_000_000
"""The default size in bytes above which content is uploaded rather than sent inside every request."""

_REMEMBERED = 4_096

_KEYS: Sequence[tuple[Callable[..., FileHost], tuple[str, ...], str]] = (
    (OpenAIFiles, ("OPENAI_API_KEY",), "OPENAI_BASE_URL"),
    (AnthropicFiles, ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL"),
    (GeminiFiles, ("GEMINI_API_KEY", "GOOGLE_API_KEY"), "GOOGLE_GEMINI_BASE_URL"),
    (FalStorage, ("FAL_KEY",), "FAL_STORAGE_URL"),
)
"""The environment variables for each provider's key and for another base URL, as in the official SDKs."""


class ProviderFiles:
    """Uploads each piece of content once to each provider, and fetches files that a provider keeps.

    An async context manager: leaving it closes the connections, while the files stay until they expire. A model API
    that takes files by their id gets content of more than `upload_above` decoded bytes as a file (0: always).
    """

    def __init__(self, *hosts: FileHost, upload_above: int = UPLOAD_ABOVE) -> None:
        self._hosts = {host.scheme: host for host in hosts}
        self.upload_above = upload_above
        self._uploaded: OrderedDict[tuple[str, bytes, str], tuple[str, float]] = OrderedDict()
        """By scheme, digest and media type: the URI, and the time until which it can be used (the loop's clock)."""
        self._locks: dict[tuple[str, bytes, str], anyio.Lock] = {}
        self._stack = AsyncExitStack()

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] = os.environ, *, upload_above: int = UPLOAD_ABOVE
    ) -> "ProviderFiles":
        """Use the providers whose keys are in the environment, under the names that their SDKs use."""
        hosts: list[FileHost] = []
        for make, names, base_url in _KEYS:
            key = next((environ[name] for name in names if environ.get(name)), None)
            if key is not None:
                hosts.append(make(key, *([environ[base_url]] if environ.get(base_url) else [])))
        return cls(*hosts, upload_above=upload_above)

    async def __aenter__(self) -> Self:
        for host in self._hosts.values():
            await self._stack.enter_async_context(host)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def schemes(self) -> frozenset[str]:
        """The schemes of the available providers."""
        return frozenset(self._hosts)

    async def upload(self, scheme: str, content: bytes, *, media_type: str, name: str | None = None) -> str:
        """Upload content unless it was uploaded before, and return its URI, such as `openai-file:file-abc`.

        Raises:
            ProviderFileError: the provider is unknown, cannot be reached, or refuses.
        """
        host = self._host(scheme)
        key = (scheme, hashlib.sha256(content).digest(), media_type)
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:  # concurrent callers with the same content wait for one upload
                now = anyio.current_time()
                known = self._uploaded.get(key)
                if known is None or known[1] <= now:
                    file_id = await host.upload(content, media_type=media_type, name=_name(name, media_type))
                    known = (f"{scheme}:{file_id}", now + host.lives)
                    self._uploaded[key] = known
                    if len(self._uploaded) > _REMEMBERED:
                        self._uploaded.popitem(last=False)
                return known[0]
        finally:
            if not lock.statistics().tasks_waiting and self._locks.get(key) is lock and not lock.locked():
                del self._locks[key]

    async def fetch(self, uri: str, *, max_bytes: int = LARGEST) -> FetchedFile:
        """Fetch a provider's file by its URI.

        Raises:
            ProviderFileError: the provider is unknown, cannot be reached, or refuses, or the file is too large.
        """
        scheme, _, file_id = uri.partition(":")
        return await self._host(scheme).fetch(file_id, max_bytes=max_bytes)

    async def delete(self, uri: str) -> None:
        """Delete the file at the provider.

        Raises:
            ProviderFileError: as for `fetch`.
        """
        scheme, _, file_id = uri.partition(":")
        await self._host(scheme).delete(file_id)
        for key in [key for key, (known, _) in self._uploaded.items() if known == uri]:
            del self._uploaded[key]

    def _host(self, scheme: str) -> FileHost:
        try:
            return self._hosts[scheme]
        except KeyError:
            there = ", ".join(sorted(self._hosts)) or "none"
            raise ProviderFileError(
                f"no files of {scheme!a} can be reached (there are: {there})",
                remedy="set the provider's API key in the environment",
            ) from None


def _name(name: str | None, media_type: str) -> str:
    """Return a file name with an extension, from which OpenAI infers the file's type."""
    plain = "".join(character for character in name or "" if character.isalnum() or character in "._- ")[-100:].strip()
    plain = plain.strip(".") or "content"
    ending = extension(media_type)
    return plain if "." in plain else f"{plain}.{ending}"

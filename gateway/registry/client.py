"""Asking a registry of MCP servers (API v0.1): searching it, and fetching an entry.

Every answer is bounded in bytes, a search in pages and in time. Redirects are not followed: the registry is the one
that the configuration names.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import anyio
import httpx2
from anyio import to_thread

from gateway.config.registry_settings import RegistrySettings
from gateway.core.fact_words import plain, seconds_words, size_words
from gateway.core.registry.entry import RegistryEntry, fits, read_entry, read_page
from gateway.errors import InvalidRequest, RegistryUnavailable
from gateway.registry.cache import AnswerCache, CachedAnswer
from gateway.system.http_client import api_client
from gateway.system.response_body import body_of

MOST_BYTES = 8 * 1024 * 1024
"""Maximum size of one answer."""
MOST_PAGES = 10
PAGE = 100
_LONGEST_WORDS = 200


@dataclass(frozen=True)
class SearchResults:
    """The active entries that were found; `is_complete`: whether there are no others. `age` is as in `FoundEntry`."""

    entries: Sequence[RegistryEntry]
    is_complete: bool
    age: float | None = None


@dataclass(frozen=True)
class FoundEntry:
    """An entry, and its age in seconds if the registry does not answer now."""

    entry: RegistryEntry
    age: float | None = None


class RegistryClient:
    """One registry, with the answers that are kept of it."""

    def __init__(self, settings: RegistrySettings, cache: AnswerCache, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._base = settings.url.rstrip("/")
        self._cache = cache
        self._clock = clock

    @property
    def url(self) -> str:
        """The address of the registry."""
        return self._base

    async def search(self, words: Sequence[str], limit: int) -> SearchResults:
        """Return at most `limit` active servers whose name, title or description has all the words.

        Raises:
            RegistryUnavailable: the registry does not answer, and nothing is kept of it.
            InvalidRequest: there are no words.
        """
        wanted = [word for text in words for word in text.split()]
        if not wanted or len(" ".join(wanted)) > _LONGEST_WORDS:
            raise InvalidRequest("give a word or two to search for", remedy="mcp-gateway search pictures")
        with anyio.move_on_after(self._settings.timeout):
            return await self._search(wanted, limit, max(wanted, key=len))
        raise self._too_slow()

    async def _search(self, wanted: Sequence[str], limit: int, asked: str) -> SearchResults:
        found: dict[str, RegistryEntry] = {}
        query: dict[str, str] = {"search": asked, "version": "latest", "limit": str(PAGE)}
        age, seen = None, set[str]()
        for _ in range(MOST_PAGES):
            answer, older = await self._get(f"/v0.1/servers?{urlencode(query)}")
            age = older if age is None else max(age, older or 0.0)
            entries, cursor = read_page(answer)
            for entry in entries:
                known = found.get(entry.name)
                if entry.is_active and fits(entry, wanted) and (known is None or entry.is_latest):
                    found[entry.name] = entry
            if len(found) >= limit or cursor is None or cursor in seen:
                return SearchResults(list(found.values())[:limit], cursor is None and len(found) <= limit, age)
            seen.add(cursor)
            query["cursor"] = cursor
        return SearchResults(list(found.values())[:limit], False, age)

    async def entry(self, name: str, version: str | None = None) -> FoundEntry:
        """Return a version of a server, or its latest one.

        Raises:
            RegistryUnavailable: the registry does not answer, and the entry is not kept.
            InvalidRequest: it has no such server, or its entry cannot be read.
        """
        path = f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version or 'latest', safe='')}"
        with anyio.move_on_after(self._settings.timeout):
            answer, age = await self._get(path, missing=f"the registry has no {_named(name, version)}")
            entry = read_entry(answer)
            if entry is None or entry.name != name or version not in (None, entry.version):
                raise InvalidRequest(f"the registry's entry of {_named(name, version)} cannot be used: it is malformed")
            return FoundEntry(entry, age)
        raise self._too_slow()

    def _too_slow(self) -> RegistryUnavailable:
        return self._unavailable(f"did not answer within {seconds_words(self._settings.timeout)}")

    def _unavailable(self, what: str, *, is_reached: bool = True) -> RegistryUnavailable:
        remedy = "try again later, or name another one: [registry] url"
        if not is_reached:
            remedy = f"is this machine online? If it is, {remedy}"
        return RegistryUnavailable(f"the registry {plain(self._base, 200)} {what}", remedy=remedy)

    async def _get(self, path: str, missing: str = "") -> tuple[Any, float | None]:
        """Return a JSON answer, and its age in seconds if it is older than wanted, because there is no newer one.

        Raises:
            RegistryUnavailable: there is neither.
            InvalidRequest: the registry says that there is no such thing (`missing`).
        """
        url = self._base + path
        kept = await to_thread.run_sync(self._cache.find, url)
        now = self._clock()
        if kept is not None and 0 <= now - kept.at < self._settings.cache:
            return kept.value, None
        try:
            # Half of the time is for what is kept, should the registry be slow.
            with anyio.fail_after(self._settings.timeout * 0.8):
                answer = await self._asked(url, kept, missing)
        except (RegistryUnavailable, TimeoutError) as error:
            if kept is not None:
                return kept.value, max(0.0, now - kept.at)
            raise self._too_slow() if isinstance(error, TimeoutError) else error from None
        await to_thread.run_sync(self._cache.keep, url, answer)
        return answer.value, None

    async def _asked(self, url: str, kept: CachedAnswer | None, missing: str) -> CachedAnswer:
        headers = {"accept": "application/json"}
        if kept is not None and kept.etag:
            headers["if-none-match"] = kept.etag
        try:
            async with (
                api_client(url, self._settings.timeout, headers) as client,
                client.stream("GET", url) as response,
            ):
                if response.status_code == 304 and kept is not None:
                    return CachedAnswer(kept.value, self._clock(), kept.etag)
                if response.status_code == 404 and missing:
                    raise InvalidRequest(missing, remedy="`mcp-gateway search WORDS` lists what it has")
                if response.status_code != 200:
                    raise self._unavailable(_refusal(response.status_code, response.headers))
                body = await body_of(response, MOST_BYTES)
                if body is None:
                    raise self._unavailable(f"sends more than {size_words(MOST_BYTES)} at once")
                value = self._parsed(body)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            why = plain(str(error), 200) or type(error).__name__
            raise self._unavailable(f"cannot be asked: {why}", is_reached=False) from None
        return CachedAnswer(value, self._clock(), plain(response.headers.get("etag", ""), 200))

    def _parsed(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise self._unavailable("does not answer with JSON: is this the address of a registry?") from None


def _refusal(status: int, headers: Mapping[str, str]) -> str:
    after = headers.get("retry-after", "")
    if status == 429:
        wait = f": wait {int(after)} s" if after.isascii() and after.isdecimal() and len(after) < 6 else ""
        return f"wants fewer requests (HTTP 429){wait}"
    if 300 <= status < 400:
        return f"redirects to {plain(headers.get('location', 'somewhere else'), 200)}, which is not followed"
    return f"answers with HTTP {status}"


def _named(name: str, version: str | None) -> str:
    return f"server {plain(name)!r}" if version is None else f"version {plain(version)} of the server {plain(name)!r}"

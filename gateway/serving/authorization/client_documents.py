"""Client id metadata documents: a client whose id is an https URL, at which a document describes it.

The URL comes from anybody, so it is fetched under the rules of `gateway.content.fetch`: no private address, no
redirect, a bounded size and time. What was found, or not, is remembered for a while. Whatever anybody asks for, hosts
that somebody has approved keep slots and room of their own.
"""

import json
import re
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import anyio
from mcp.server.auth.provider import RegistrationError

from gateway.config.content_settings import FetchSettings
from gateway.content.fetch import fetch
from gateway.core.fact_words import plain
from gateway.core.model.json_values import as_object
from gateway.errors import FetchError
from gateway.serving.authorization.clients import Client, described_client

_LARGEST = 16 * 1024
_SECONDS = 10.0
_FOUND_SECONDS = 3_600.0
_NOT_FOUND_SECONDS = 30.0
_REMEMBERED = 500
_AT_ONCE = 4
_MOST_OF_HOST = 4
_MOST_IN_ALL = 40
"""Maximum number of documents that are being fetched, or wait for it."""
_METHODS = ("none", "private_key_jwt")
"""How such clients may want to authenticate; here, none of them needs to.

ChatGPT's document says `private_key_jwt`, but it also talks to servers that offer `none`. PKCE and rotated refresh
tokens protect what it is given.
"""
_LONGEST = 1_000
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+")
"""Names with other letters look like those of others, so they have to be written as they are in DNS (`xn--...`)."""

ValueT = TypeVar("ValueT")


class UnusableDocument(Exception):
    """There is no usable document at a client's URL; the message says why."""


class ClientDocuments:
    """Fetches and remembers the documents. `allow_private`: hosts that may have private addresses, or no TLS.

    `is_approved` says whether somebody's approval of a client is in force.
    """

    def __init__(
        self,
        is_approved: Callable[[str], Awaitable[bool]],
        allow_private: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_approved = is_approved
        self._allow_private = tuple(allow_private)
        self._urls, self._turns, self._of_approved = _Locks(), _Turns(), anyio.CapacityLimiter(_AT_ONCE)
        self._found, self._approved = (_Remembered[Client](_FOUND_SECONDS, clock) for _ in range(2))
        self._failed = _Remembered[str](_NOT_FOUND_SECONDS, clock)

    def is_document(self, client_id: str) -> bool:
        """Whether a client id is the URL of a document, and not that of a registered client."""
        return client_id.startswith(("https://", "http://"))

    async def find(self, url: str) -> Client:
        """Return the client that the document at this URL describes.

        Raises:
            UnusableDocument: the URL may not be fetched, or has no usable document.
        """
        if fault := self._fault_of(url):
            raise UnusableDocument(f"the client id {fault}")
        if (known := self._known(url)) is not None:
            return known
        is_approved = await self._is_approved(url)
        async with self._urls.locked(url):
            if (known := self._known(url)) is not None:  # somebody else has fetched it meanwhile
                return known
            async with self._of_approved if is_approved else self._turns.turn(urlsplit(url).hostname or ""):
                try:
                    found = await self._fetched(url)
                except UnusableDocument as fault:
                    self._failed.keep(url, str(fault))
                    raise
            (self._approved if is_approved else self._found).keep(url, found)
            return found

    def _known(self, url: str) -> Client | None:
        if (found := self._approved.get(url) or self._found.get(url)) is not None:
            return found
        if (fault := self._failed.get(url)) is not None:
            raise UnusableDocument(fault)
        return None

    async def _fetched(self, url: str) -> Client:
        settings = FetchSettings.model_construct(
            allow=(url,),
            allow_private=self._allow_private,
            max_bytes=_LARGEST,
            timeout=_SECONDS,
            idle=_SECONDS / 2,
            redirects=0,
        )
        try:
            async with fetch(url, settings) as fetched:
                content = b"".join([chunk async for chunk in fetched])
        except FetchError as error:
            raise UnusableDocument(f"the document about the client cannot be fetched: {error.message}") from None
        try:
            document = as_object(json.loads(content))
        except (ValueError, RecursionError):
            raise UnusableDocument("the document about the client is not JSON") from None
        if document.get("client_id") != url:
            raise UnusableDocument("the document about the client has another client_id than its own URL")
        if document.get("token_endpoint_auth_method", "none") not in _METHODS or "client_secret" in document:
            raise UnusableDocument("the document about the client speaks of a secret, which everybody could read")
        try:
            return described_client(url, document, documented=True)
        except RegistrationError as error:
            raise UnusableDocument(f"the document about the client cannot be used: {error.error_description}") from None

    def _fault_of(self, url: str) -> str | None:
        try:
            parts = urlsplit(url)
            named = parts.netloc in self._allow_private or parts.hostname in self._allow_private
        except ValueError:
            return "is not a URL"
        if parts.scheme != "https" and not named:
            return "must be an https:// URL"
        if not _HOST.fullmatch(parts.netloc):
            return "must be a URL with a plain host, as DNS has it"
        if len(url) > _LONGEST or parts.path in ("", "/") or plain(url, _LONGEST) != url or "*" in url:
            return "must be a URL with a path of its own"
        if "#" in url or "?" in url or "@" in parts.netloc or {".", ".."} & set(parts.path.split("/")):
            return "must be a URL without user, query, fragment and dot segments"
        return None


class _Remembered(Generic[ValueT]):
    """Values by URL; each expires, and the one that was not used for longest makes way if there are too many."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._values: OrderedDict[str, tuple[float, ValueT]] = OrderedDict()

    def get(self, url: str) -> ValueT | None:
        until, value = self._values.get(url, (0.0, None))
        if value is None or until <= self._clock():
            return None
        self._values.move_to_end(url)
        return value

    def keep(self, url: str, value: ValueT) -> None:
        self._values[url] = (self._clock() + self._seconds, value)
        self._values.move_to_end(url)
        if len(self._values) > _REMEMBERED:
            self._values.popitem(last=False)


class _Locks:
    """Locks by name; each is there while somebody wants it."""

    def __init__(self) -> None:
        self.wanted = Counter[str]()
        self._locks: dict[str, anyio.Lock] = {}

    @asynccontextmanager
    async def locked(self, name: str) -> AsyncGenerator[None]:
        self.wanted[name] += 1
        try:
            async with self._locks.setdefault(name, anyio.Lock()):
                yield
        finally:
            self.wanted[name] -= 1
            if not self.wanted[name]:
                del self.wanted[name], self._locks[name]


class _Turns:
    """Whose turn it is to be fetched: one document of each host at a time, and a few in all."""

    def __init__(self) -> None:
        self._hosts = _Locks()
        self._slots = anyio.CapacityLimiter(_AT_ONCE)

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncGenerator[None]:
        """Context manager: wait until a document of this host may be fetched.

        Raises:
            UnusableDocument: too many wait for that already.
        """
        wanted = self._hosts.wanted
        if wanted[host] >= _MOST_OF_HOST or wanted.total() >= _MOST_IN_ALL:
            raise UnusableDocument("too many documents about clients are being fetched; try again in a minute")
        async with self._hosts.locked(host), self._slots:
            yield

"""Ask an authorization server about a token (RFC 7662), for tokens that say nothing themselves."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import anyio

from gateway.config.token_hashes import hash_of
from gateway.errors import FetchFailed
from gateway.serving.access.read_json import post_form

_KEPT_SECONDS = 25.0
"""Seconds for which an answer counts. A revoked token is refused within a minute, also where streams are open."""
_MOST_KEPT = 1_000
_AT_ONCE = 8
_MOST_WAITING = 500
_MOST_BYTES = 64 * 1024


_Answers = OrderedDict[str, tuple[float, Mapping[str, Any]]]


class Introspection:
    """Asks about tokens, at most a few at once, and remembers the answers for a while.

    Wrong tokens, of which anybody can send many, push out no others.
    """

    def __init__(
        self, url: str, client_id: str, client_secret: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        # RFC 6749, 2.3.1: both are form-encoded before they become a user and a password.
        self._client = quote(client_id, safe=""), quote(client_secret, safe="")
        self._clock = clock
        self._right, self._wrong = _Answers(), _Answers()
        self._asking = anyio.Semaphore(_AT_ONCE)

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        """Return what the server says of a token; None if it is not a valid one.

        Raises:
            FetchFailed: the server does not answer, or not as it should, or too many tokens wait to be asked about.
        """
        key = hash_of(token)
        if (found := self._remembered(key)) is None:
            if self._asking.statistics().tasks_waiting >= _MOST_WAITING:
                raise FetchFailed(f"too many tokens wait for {urlsplit(self._url).netloc} to be asked about them")
            async with self._asking:
                if (found := self._remembered(key)) is None:  # nobody else has asked meanwhile
                    found = await self._ask(token)
                    self._keep(key, found)
        return found if _is_right(found) else None

    def knows(self, token: str) -> bool:
        """Whether a token has been a valid one, as far as that is remembered."""
        return hash_of(token) in self._right

    def _remembered(self, key: str) -> Mapping[str, Any] | None:
        until, found = self._right.get(key) or self._wrong.get(key) or (float("-inf"), None)
        return found if self._clock() < until else None

    def _keep(self, key: str, found: Mapping[str, Any]) -> None:
        kept, other = (self._right, self._wrong) if _is_right(found) else (self._wrong, self._right)
        other.pop(key, None)  # what it was before
        kept[key] = (self._clock() + _KEPT_SECONDS, found)
        kept.move_to_end(key)
        if len(kept) > _MOST_KEPT:
            kept.popitem(last=False)

    async def _ask(self, token: str) -> Mapping[str, Any]:
        form = {"token": token, "token_type_hint": "access_token"}
        return await post_form(self._url, form, self._client, most_bytes=_MOST_BYTES)


def _is_right(found: Mapping[str, Any]) -> bool:
    return found.get("active") is True

"""Subscriptions of hosts at an upstream, kept across its connections, and the changes that it announces."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import anyio

from gateway.core.fact_words import counted
from gateway.core.model.json_values import as_object, is_list
from gateway.core.model.wire import SUBSCRIPTION_ID
from gateway.errors import UpstreamError, UpstreamRefused
from gateway.upstream.connection.backoff import Backoff

if TYPE_CHECKING:
    from gateway.core.model.caller import Caller
    from gateway.upstream.connection.session import Session

logger = logging.getLogger(__name__)

UPDATED = "notifications/resources/updated"

PATIENCE = 5.0
"""Seconds that a host waits for the upstream to confirm its subscription, which then continues in the background."""

_LISTS = {
    "toolsListChanged": ("tools", "notifications/tools/list_changed"),
    "promptsListChanged": ("prompts", "notifications/prompts/list_changed"),
    "resourcesListChanged": ("resources", "notifications/resources/list_changed"),
}

_NONE: frozenset[str] = frozenset()
_End = Literal["broken", "refused"]
_STEADY = 20.0  # seconds after which a subscription counts as stable


class Subscriptions:
    """The URIs subscribed to on one connection, counted, since several hosts may want the same.

    They outlive a connection, and are subscribed to again on the next one. In the handshake era each is a request of
    its own; in the modern era all of them, with the changes of lists, are one `subscriptions/listen`, which is
    repeated when they change or when it breaks. One that is replaced is heard until the next is acknowledged.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._uris: Counter[str] = Counter()
        self._changed = anyio.Event()
        self._settled: frozenset[str] = frozenset()
        self._news = anyio.Event()
        self._missed: Callable[[str, Mapping[str, Any]], None] = lambda method, params: None
        self._unheard = _NONE
        self._streams = 0
        self._stream: _Stream | None = None

    @property
    def uris(self) -> frozenset[str]:
        """The URIs that are wanted now."""
        return frozenset(self._uris)

    def want(self, uri: str) -> None:
        """Add a subscriber to a resource, without waiting for the upstream."""
        self._uris[uri] += 1
        self._tell()

    async def add(self, uri: str) -> None:
        """Add a subscriber to a resource, and wait a while until the upstream has confirmed the subscription."""
        self.want(uri)
        await self.confirmed(uri)

    async def confirmed(self, uri: str) -> None:
        """Wait a while until the upstream has confirmed the subscription to a resource."""
        with anyio.move_on_after(PATIENCE) as patience:
            while uri not in self._settled and uri in self._uris:
                await self._news.wait()
        if patience.cancelled_caught:
            self._unheard |= {uri}

    def remove(self, uri: str) -> None:
        """Remove a subscriber from a resource."""
        if self._uris[uri] <= 1:
            del self._uris[uri]
        else:
            self._uris[uri] -= 1
        self._tell()

    async def keep(self, session: Session, missed: Callable[[str, Mapping[str, Any]], None]) -> None:
        """Keep the subscriptions on a session while it lasts. `missed` is called with notifications for everything that
        may have changed while nobody was listening.
        """
        self._missed = missed
        try:
            if session.opening.era == "modern":
                await self._listen(session)
            else:
                await self._subscribe(session)
        finally:
            self._settled = frozenset()

    def acknowledged(self, params: Mapping[str, Any]) -> None:
        """Handle a modern upstream's acknowledgement of a stream, and report changes that may have been missed."""
        meta = params.get("_meta")
        stream = self._stream
        if stream is None or as_object(meta).get(SUBSCRIPTION_ID) not in (None, stream.id):
            return  # for a stream that has been replaced meanwhile
        stream.replace_former()
        filters = as_object(params.get("notifications"))
        for key, (_, method) in _LISTS.items():
            if filters.get(key) is True:
                self._missed(method, {})
        uris = filters.get("resourceSubscriptions")
        told = [uri for uri in uris if isinstance(uri, str)] if is_list(uris) else []
        if left_out := stream.uris.difference(told):
            logger.info(
                "upstream %s does not report changes of %s that hosts subscribed to",
                self._name,
                counted(len(left_out), "resource"),
            )
        # What was wanted since this stream was asked for waits for the next one.
        self._settle(stream.uris)

    def _settle(self, uris: frozenset[str]) -> None:
        """Have these subscriptions confirmed, and report what may have changed while their hosts relied on them."""
        self._unheard &= self.uris
        for uri in self._unheard & uris:
            self._missed(UPDATED, {"uri": uri})
        self._unheard -= uris
        self._settled = uris
        self._news.set()
        self._news = anyio.Event()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _subscribe(self, session: Session) -> None:
        can = session.opening.can("resources", "subscribe")
        there: frozenset[str] = frozenset()
        while True:
            changed, wanted = self._changed, self.uris
            for method, uris in (("resources/subscribe", wanted - there), ("resources/unsubscribe", there - wanted)):
                for uri in sorted(uris) if can else ():
                    await self._one(session, method, uri)
            there = wanted
            self._settle(there)
            await changed.wait()

    async def _one(self, session: Session, method: str, uri: str) -> None:
        try:
            with anyio.move_on_after(PATIENCE):  # a request that is never answered must not block the others
                await session.ask(method, {"uri": uri})
        except UpstreamError as error:
            logger.info("upstream %s: %s of a resource failed: %s", self._name, method, error.message)

    async def _listen(self, session: Session) -> None:
        kinds = [key for key, (feature, _) in _LISTS.items() if session.opening.announces(feature)]
        backoff = Backoff()
        refused: frozenset[frozenset[str]] = frozenset()
        self._stream = None
        async with anyio.create_task_group() as streams:
            while True:
                wanted = self.uris
                # An upstream that refuses these URIs may still announce changes of its lists.
                asked = next((uris for uris in (wanted, _NONE) if (kinds or uris) and uris not in refused), None)
                stream = self._next_stream(wanted)
                if asked is None:
                    stream.replace_former()
                    self._settle(wanted)
                else:
                    streams.start_soon(self._hear, session, stream, kinds, asked)
                while self.uris == wanted and stream.end is None:
                    await self._changed.wait()
                if stream.end == "refused":
                    refused = frozenset({asked or _NONE, *refused & {wanted, _NONE}})
                elif stream.end == "broken":
                    if anyio.current_time() - stream.began >= _STEADY:
                        backoff.reset()
                    if self.uris == wanted:
                        await anyio.sleep(backoff.delay())

    def _next_stream(self, wanted: frozenset[str]) -> _Stream:
        """Return the stream that is to replace the current one, which is heard until the new one is acknowledged."""
        self._streams += 1
        former = self._stream
        if former is not None and not former.is_acknowledged:
            former.scope.cancel()
            former = former.former
        self._stream = _Stream(f"listen-{self._streams}", wanted, former)
        return self._stream

    async def _hear(self, session: Session, stream: _Stream, kinds: list[str], uris: frozenset[str]) -> None:
        """Listen until the stream ends, and say how."""
        wanted: dict[str, Any] = dict.fromkeys(kinds, True)
        if uris:
            wanted["resourceSubscriptions"] = sorted(uris)
        with stream.scope:
            end: _End = "broken"
            try:
                await session.listen(wanted, stream.id)
            except UpstreamRefused:
                end = "refused"
            except UpstreamError:
                logger.debug("upstream %s: its subscription ended", self._name)
            if end == "broken":
                self._unheard |= stream.uris
            stream.end = end
            self._tell()


class _Stream:
    """One `subscriptions/listen`: for all that is wanted at its time, though the upstream may have refused that."""

    def __init__(self, stream_id: str, uris: frozenset[str], former: _Stream | None = None) -> None:
        self.id = stream_id
        """Not a number, so that no other request can have the same id."""
        self.uris = uris
        self.former = former
        self.scope = anyio.CancelScope()
        self.began = anyio.current_time()
        self.is_acknowledged = False
        self.end: _End | None = None

    def replace_former(self) -> None:
        """Be the only one, from now on."""
        self.is_acknowledged = True
        if self.former is not None:
            self.former.scope.cancel()
            self.former = None


class Subscriber:
    """A caller that is subscribed to a resource: on one connection at a time, until it leaves."""

    def __init__(self, uri: str, caller: Caller) -> None:
        self.uri = uri
        self.caller = caller
        self._place: tuple[Subscriptions, dict[Subscriber, None]] | None = None

    def join(self, subscriptions: Subscriptions, subscribers: dict[Subscriber, None]) -> None:
        """Subscribe on a connection, and be one of an upstream's `subscribers`, in place of an earlier one."""
        self.leave()
        self._place = subscriptions, subscribers
        subscriptions.want(self.uri)
        subscribers[self] = None

    def is_on(self, subscriptions: Subscriptions) -> bool:
        """Whether it is subscribed on this connection."""
        return self._place is not None and self._place[0] is subscriptions

    def leave(self) -> None:
        """End the subscription, wherever it is now."""
        if self._place is not None:
            (subscriptions, subscribers), self._place = self._place, None
            subscriptions.remove(self.uri)
            del subscribers[self]

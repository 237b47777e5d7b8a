"""What an upstream has: its lists of tools, resources and templates, fetched, kept fresh, and known when it is away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

from gateway.errors import UpstreamError, UpstreamGarbage, UpstreamRefused
from gateway.upstream.backoff import Backoff
from gateway.upstream.failures import Subject

if TYPE_CHECKING:
    from gateway.upstream.session import Session

logger = logging.getLogger(__name__)

WireList = tuple[dict[str, Any], ...]

METHOD_NOT_FOUND = -32601

_RELIST_PAUSE = 0.1
_RESOURCES_SHARE = 0.2  # of the start limit, for listing resources before the upstream is called ready

_CHANGES = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
}


class Lists:
    """The last known lists of one upstream. `announce` is told `tools` or `resources` when one has changed."""

    def __init__(self, subject: Subject, announce: Callable[[str], None]) -> None:
        self.tools: WireList = ()
        self.resources: WireList = ()
        self.templates: WireList = ()
        self.subject = subject
        self._announce = announce
        self._stale: set[str] = set()
        self._stale_changed = anyio.Event()

    def notified(self, method: str) -> None:
        """A notification of the upstream's: maybe one that a list has changed."""
        if (kind := _CHANGES.get(method)) is not None:
            self._mark(kind)

    async def fetch(self, session: Session) -> None:
        """List everything, once connected. Raises UpstreamError when the tools cannot be listed."""
        self._stale.clear()
        await self._list_tools(session)
        with anyio.move_on_after(_RESOURCES_SHARE * self.subject.settings.timeout.start) as listing:
            await self._list_resources(session)
        if listing.cancelled_caught:  # the tools do not wait for them
            self._mark("resources")

    async def keep(self, session: Session, listed: Callable[[], Awaitable[None]]) -> None:
        """List anew whatever is said to have changed, for as long as the connection lasts; `listed` is called then."""
        while True:
            await self._stale_changed.wait()
            stale, self._stale, self._stale_changed = self._stale, set(), anyio.Event()
            try:
                with anyio.move_on_after(self.subject.settings.timeout.start):
                    if "tools" in stale:
                        await self._list_tools(session)
                    if "resources" in stale:
                        await self._list_resources(session)
                    await listed()
            except UpstreamError as error:
                self._stays(error)
            await anyio.sleep(_RELIST_PAUSE)  # an upstream that announces changes without end is asked in its turn

    async def listen(self, session: Session) -> None:
        """In the stateless era changes are told only to those who listen; a subscription that ends is made anew."""
        wanted = {f"{kind}ListChanged": True for kind in ("tools", "resources") if session.opening.announces(kind)}
        if session.opening.era != "modern" or not wanted:
            return
        backoff = Backoff()
        while True:
            try:
                await session.listen(wanted)
            except UpstreamRefused:
                return
            except UpstreamError:
                logger.debug("upstream %s: its subscription ended", self.subject.name)
            await anyio.sleep(backoff.delay())
            self._mark("tools", "resources")  # nobody was told of what changed between two subscriptions

    async def _list_tools(self, session: Session) -> None:
        tools: WireList = ()
        if session.opening.offers("tools"):
            tools = await session.list_tools()
        if tools != self.tools:
            self.tools = tools
            self._announce("tools")

    async def _list_resources(self, session: Session) -> None:
        before = (self.resources, self.templates)
        if session.opening.offers("resources"):
            self.resources = await self._listed(session, "resources/list", "resources", self.resources)
            self.templates = await self._listed(
                session, "resources/templates/list", "resourceTemplates", self.templates
            )
        else:
            self.resources = self.templates = ()
        if before != (self.resources, self.templates):
            self._announce("resources")

    async def _listed(self, session: Session, method: str, key: str, before: WireList) -> WireList:
        """A list that an upstream may fail to give without costing anything else."""
        try:
            return await session.list_all(method, key)
        except UpstreamRefused as error:
            if error.code == METHOD_NOT_FOUND:
                return ()
            self._stays(error)
        except UpstreamGarbage as error:
            self._stays(error)
        return before

    def _stays(self, error: UpstreamError) -> None:
        said = self.subject.secrets.cause(error.message)
        logger.warning("%s; what it listed before stays", said)

    def _mark(self, *kinds: str) -> None:
        self._stale.update(kinds)
        self._stale_changed.set()

"""What an upstream has: its tools, resources, templates and prompts, listed, kept fresh, and known when it is away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import anyio

from gateway.core.catalogue.hints import NO_HINT, of_pages
from gateway.core.model.wire import METHOD_NOT_FOUND
from gateway.errors import UpstreamError, UpstreamGarbage, UpstreamRefused
from gateway.upstream.failures import Subject

if TYPE_CHECKING:
    from gateway.core.model.wire import WireObject
    from gateway.upstream.session import Session

logger = logging.getLogger(__name__)

WireList = tuple[dict[str, Any], ...]

_RELIST_PAUSE = 0.1
_SHARE = 0.2  # of the start limit, for each kind but tools, before the upstream is called ready


class _List(NamedTuple):
    kind: str
    """The capability that it needs, and what is announced when it has changed."""
    method: str
    key: str


_LISTS: Mapping[str, _List] = {
    "tools": _List("tools", "tools/list", "tools"),
    "resources": _List("resources", "resources/list", "resources"),
    "templates": _List("resources", "resources/templates/list", "resourceTemplates"),
    "prompts": _List("prompts", "prompts/list", "prompts"),
}
KINDS = tuple(dict.fromkeys(each.kind for each in _LISTS.values()))
"""What changes as a whole, and is announced."""


class Known(Protocol):
    """Whatever has lists: `Lists`, or the catalogue that was kept on disk."""

    @property
    def tools(self) -> WireList: ...
    @property
    def resources(self) -> WireList: ...
    @property
    def templates(self) -> WireList: ...
    @property
    def prompts(self) -> WireList: ...
    @property
    def hints(self) -> Mapping[str, Mapping[str, Any]]: ...


class Lists:
    """The last known lists of one upstream. `announce` is told which of `KINDS` has changed.

    `hints` are what each list said about itself, by its name here (`gateway.core.catalogue.hints`).
    """

    def __init__(self, subject: Subject, announce: Callable[[str], None]) -> None:
        self.subject = subject
        self.hints: Mapping[str, Mapping[str, Any]] = {}
        self._items: dict[str, WireList] = {}
        self._announce = announce
        self._stale: set[str] = set()
        self._stale_changed = anyio.Event()

    @property
    def tools(self) -> WireList:
        """As they came."""
        return self._items.get("tools", ())

    @property
    def resources(self) -> WireList:
        """As they came."""
        return self._items.get("resources", ())

    @property
    def templates(self) -> WireList:
        """As they came."""
        return self._items.get("templates", ())

    @property
    def prompts(self) -> WireList:
        """As they came."""
        return self._items.get("prompts", ())

    def take(self, known: Known) -> None:
        """Take over what is known from somewhere else, telling nobody."""
        self._items = {
            "tools": known.tools,
            "resources": known.resources,
            "templates": known.templates,
            "prompts": known.prompts,
        }
        self.hints = dict(known.hints)

    def differing(self, other: Lists) -> list[str]:
        """Which of `KINDS` are not the same as another's."""
        return [
            kind
            for kind in KINDS
            if any(getattr(self, name) != getattr(other, name) for name, each in _LISTS.items() if each.kind == kind)
        ]

    def known(self) -> dict[str, Any]:
        """The lists and hints by name, to be kept."""
        return {**{name: self._items.get(name, ()) for name in _LISTS}, "hints": self.hints}

    def notified(self, method: str) -> None:
        """A notification of the upstream's: maybe one that a list has changed."""
        kind = method.removeprefix("notifications/").removesuffix("/list_changed")
        if kind in KINDS and method == f"notifications/{kind}/list_changed":
            self._mark(kind)

    async def fetch(self, session: Session) -> None:
        """List everything, once connected. Raises UpstreamError when the tools cannot be listed."""
        self._stale.clear()
        await self._refresh(session, "tools")
        for kind in KINDS[1:]:
            with anyio.move_on_after(_SHARE * self.subject.settings.timeout.start) as listing:
                await self._refresh(session, kind)
            if listing.cancelled_caught:  # the tools do not wait for them
                self._mark(kind)

    async def keep(self, session: Session, listed: Callable[[], Awaitable[None]]) -> None:
        """List anew whatever is said to have changed, for as long as the connection lasts; `listed` is called then."""
        while True:
            await self._stale_changed.wait()
            stale, self._stale, self._stale_changed = self._stale, set(), anyio.Event()
            for kind in (kind for kind in KINDS if kind in stale):
                try:
                    with anyio.move_on_after(self.subject.settings.timeout.start):
                        await self._refresh(session, kind)
                except UpstreamError as error:
                    self._stays(error)
            await listed()
            await anyio.sleep(_RELIST_PAUSE)  # an upstream that announces changes without end is asked in its turn

    async def _refresh(self, session: Session, kind: str) -> None:
        """The lists of one kind. Raises UpstreamError when the tools cannot be listed, or the connection is lost."""
        changed = False
        for name, each in _LISTS.items():
            if each.kind == kind:
                before = self._items.get(name, ()), self.hints.get(name, NO_HINT)
                items, hint = before
                if not session.opening.offers(kind):
                    items, hint = (), NO_HINT
                elif (found := await self._listed(session, name, each)) is not None:
                    items, hint = found
                self._items[name], self.hints = items, {**self.hints, name: hint}
                changed |= (items, hint["_meta"]) != (before[0], before[1]["_meta"])
        if changed:
            self._announce(kind)

    async def _listed(self, session: Session, name: str, each: _List) -> tuple[WireList, Mapping[str, Any]] | None:
        """A list and its hint; None when the upstream fails to give one, which costs nothing else (but for tools)."""
        pages: list[WireObject] = []
        if name == "tools":
            return await session.list_tools(pages), of_pages(pages)
        try:
            return await session.list_all(each.method, each.key, pages), of_pages(pages)
        except UpstreamRefused as error:
            if error.code == METHOD_NOT_FOUND:
                return (), NO_HINT
            self._stays(error)
        except UpstreamGarbage as error:
            self._stays(error)
        return None

    def _stays(self, error: UpstreamError) -> None:
        said = self.subject.secrets.cause(error.message)
        logger.warning("%s; what it listed before stays", said)

    def _mark(self, *kinds: str) -> None:
        self._stale.update(kinds)
        self._stale_changed.set()

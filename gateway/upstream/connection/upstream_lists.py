"""An upstream's lists: tools, resources, templates and prompts, kept up to date, and remembered while it is away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import anyio
from anyio import sleep

from gateway.core.model.wire import METHOD_NOT_FOUND
from gateway.core.policy.changed_tools import changed_tools
from gateway.core.tools.catalogue.hints import NO_HINT, of_pages
from gateway.errors import UpstreamError, UpstreamGarbage, UpstreamRefused
from gateway.upstream.connection.allowance import Allowance
from gateway.upstream.transports.failures import Subject

if TYPE_CHECKING:
    from gateway.core.model.tool_facts import ToolFacts
    from gateway.core.model.wire import WireObject
    from gateway.upstream.connection.session import Session

logger = logging.getLogger(__name__)

WireList = tuple[dict[str, Any], ...]
Announce: TypeAlias = "Callable[[str, frozenset[ToolFacts] | None], None]"
"""Called with a kind of list and, for tools, those of which one has to exist for a host that this concerns."""

_RELIST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0  # for an upstream that keeps announcing changes
_PAUSE_PER_ITEM = 0.001
"""For each item of all lists: whoever is offered them has to have them made anew after each change."""
_SHARE = 0.2  # of the start limit, for each kind except tools, before the upstream counts as ready


class _List(NamedTuple):
    kind: str
    """The capability that the list needs, and the kind that is announced when it has changed."""
    method: str
    key: str


_LISTS: Mapping[str, _List] = {
    "tools": _List("tools", "tools/list", "tools"),
    "resources": _List("resources", "resources/list", "resources"),
    "templates": _List("resources", "resources/templates/list", "resourceTemplates"),
    "prompts": _List("prompts", "prompts/list", "prompts"),
}
KINDS = tuple(dict.fromkeys(each.kind for each in _LISTS.values()))
"""The kinds of lists. Changes are announced for a whole kind."""


class KnownLists(Protocol):
    """The lists of an upstream: in `Lists`, or in the catalogue kept on disk."""

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
    """The last known lists of one upstream. `announce` is called with each of `KINDS` that has changed or that the
    upstream announced: announcements are passed to hosts even if the list is the same.

    `hints` are the cache hints of each list, by its name (`gateway.core.tools.catalogue.hints`).
    """

    def __init__(self, subject: Subject, announce: Announce) -> None:
        self.subject = subject
        self.hints: Mapping[str, Mapping[str, Any]] = {}
        self.left_out: Mapping[str, str] = {}
        """Incomplete lists, each with the reason why items were left out."""
        self._sizes: dict[str, int] = {}
        self._items: dict[str, WireList] = {}
        self._announce = announce
        self._stale: set[str] = set()
        self._said: set[str] = set()
        """Changes that the upstream has announced and that were not passed to hosts yet."""
        self._stale_changed = anyio.Event()

    @property
    def tools(self) -> WireList:
        """The list as received."""
        return self._items.get("tools", ())

    @property
    def resources(self) -> WireList:
        """The list as received."""
        return self._items.get("resources", ())

    @property
    def templates(self) -> WireList:
        """The list as received."""
        return self._items.get("templates", ())

    @property
    def prompts(self) -> WireList:
        """The list as received."""
        return self._items.get("prompts", ())

    def take(self, known: KnownLists) -> None:
        """Adopt lists known from elsewhere, without announcing them."""
        self._items = {
            "tools": known.tools,
            "resources": known.resources,
            "templates": known.templates,
            "prompts": known.prompts,
        }
        self.hints = dict(known.hints)

    def differing(self, other: KnownLists) -> dict[str, frozenset[ToolFacts] | None]:
        """Return those of `KINDS` that differ from `other`, as they are announced."""
        return {
            kind: self._concerned(kind, other.tools)
            for kind in KINDS
            if any(getattr(self, name) != getattr(other, name) for name, each in _LISTS.items() if each.kind == kind)
        }

    def known(self) -> dict[str, Any]:
        """Return the lists and hints by name, for storing."""
        return {**{name: self._items.get(name, ()) for name in _LISTS}, "hints": self.hints}

    def notified(self, method: str, *, was_said: bool = True) -> None:
        """Handle a notification of the upstream, which may announce that a list has changed.

        If `was_said` is false, the notification was not received, but may have been missed.
        """
        kind = method.removeprefix("notifications/").removesuffix("/list_changed")
        if kind in KINDS and method == f"notifications/{kind}/list_changed":
            self._said.update([kind] if was_said else ())
            self._mark(kind)

    async def fetch(self, session: Session) -> None:
        """Fetch all lists after connecting. Raises UpstreamError if the tools cannot be listed."""
        self._stale.clear()
        self._said.clear()
        await self._refresh(session, "tools")
        for kind in KINDS[1:]:
            with anyio.move_on_after(_SHARE * self.subject.settings.timeout.start) as listing:
                await self._refresh(session, kind)
            if listing.cancelled_caught:  # the tools do not wait for them
                self._mark(kind)

    async def keep(self, session: Session, listed: Callable[[], Awaitable[None]]) -> None:
        """Fetch lists again after changes while the connection lasts, and call `listed` each time."""
        pause, is_again = _RELIST_PAUSE, False
        while True:
            await self._stale_changed.wait()
            stale, self._stale, self._stale_changed = self._stale, set(), anyio.Event()
            news = [await self._again(session, kind) for kind in KINDS if kind in stale]
            await listed()
            # An upstream that announces changes without end, true or not, is asked less and less often.
            pause = _RELIST_PAUSE if any(news) and not is_again else min(pause * 2, _LONGEST_PAUSE)
            await sleep(max(pause, _PAUSE_PER_ITEM * sum(map(len, self._items.values()))))
            is_again = self._stale_changed.is_set()

    async def _again(self, session: Session, kind: str) -> bool:
        """Fetch one kind again, announce it if it changed or the upstream said so, and return whether it changed."""
        was_said, changed = kind in self._said, False
        self._said.discard(kind)
        try:
            with anyio.move_on_after(self.subject.settings.timeout.start):
                changed = await self._refresh(session, kind)
        except UpstreamError as error:
            self._stays(error)
        if was_said and not changed:
            self._announce(kind, self._concerned(kind, self.tools))
        return changed

    async def _refresh(self, session: Session, kind: str) -> bool:
        """Fetch the lists of one kind, announce it if they have changed, and return whether they have.

        Raises UpstreamError if the tools cannot be listed, or the connection is lost.
        """
        changed, tools = False, self.tools
        for name, each in _LISTS.items():
            if each.kind == kind:
                before = self._items.get(name, ()), self.hints.get(name, NO_HINT)
                items, hint = before
                if not session.opening.offers(kind):
                    items, hint = (), NO_HINT
                    self._keep_size(name, Allowance())
                elif (found := await self._listed(session, name, each)) is not None:
                    items, hint = found
                self._items[name], self.hints = items, {**self.hints, name: hint}
                changed |= (items, hint["_meta"]) != (before[0], before[1]["_meta"])
        if changed:
            self._announce(kind, self._concerned(kind, tools))
        return changed

    def _concerned(self, kind: str, before: WireList) -> frozenset[ToolFacts] | None:
        """Return the tools that a change of one kind is about, if it is about tools."""
        return changed_tools(self.subject.name, before, self.tools) if kind == "tools" else None

    async def _listed(self, session: Session, name: str, each: _List) -> tuple[WireList, Mapping[str, Any]] | None:
        """Fetch a list and its hint; None if that fails, so that other lists are unaffected. For tools it raises."""
        pages: list[WireObject] = []
        allowance = Allowance(self._room_for(name))
        if name == "tools":
            tools = await session.list_tools(pages, allowance)
            self._keep_size(name, allowance)
            return tools, of_pages(pages)
        try:
            items = await session.list_all(each.method, each.key, pages, allowance)
            self._keep_size(name, allowance)
            return items, of_pages(pages)
        except UpstreamRefused as error:
            if error.code == METHOD_NOT_FOUND:
                return (), NO_HINT
            self._stays(error)
        except UpstreamGarbage as error:
            self._stays(error)
        return None

    def _room_for(self, name: str) -> int | None:
        """Return the bytes that a list may take: what the others leave of `limits.list_bytes`; None if unlimited."""
        most = self.subject.settings.limits.list_bytes
        return max(0, most - sum(size for other, size in self._sizes.items() if other != name)) if most else None

    def _keep_size(self, name: str, allowance: Allowance) -> None:
        self._sizes[name] = allowance.taken
        known = self.left_out.get(name)
        self.left_out = {other: why for other, why in self.left_out.items() if other != name}
        if allowance.cut is None:
            return
        why = f"only the first {len(allowance.items):,} of its {name} are offered: there are {allowance.cut}"
        self.left_out = {**self.left_out, name: why}
        if known != why:
            logger.warning("upstream %s: %s", self.subject.name, why)

    def _stays(self, error: UpstreamError) -> None:
        said = self.subject.secrets.cause(error.message)
        logger.warning("%s; its previous list stays", said)

    def _mark(self, *kinds: str) -> None:
        self._stale.update(kinds)
        self._stale_changed.set()

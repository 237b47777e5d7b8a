"""All upstreams together, each connected by its own task and independent of the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup

from gateway.config.settings_diff import needs_restart
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.claims import CameWithOf
from gateway.core.model.tool_facts import ToolFacts
from gateway.upstream.attendance import Attendance
from gateway.upstream.authorization.ports import Logins
from gateway.upstream.authorization.principal_access import nobody_came
from gateway.upstream.catalogues import Catalogues
from gateway.upstream.connection.first_start import LaunchTurns
from gateway.upstream.transports.causes import Retired
from gateway.upstream.upstream import OnChange, Upstream, nobody

if TYPE_CHECKING:
    from gateway.upstream.recording.recorder import Recorder

STOP_GRACE = 12.0
"""Seconds for a clean shutdown of all upstreams together when the gateway ends."""

_LISTED = ("tools", "read_only", "pins")
"""Settings that decide which tools are listed."""

_News = tuple[str, str, frozenset[ToolFacts] | None]
"""A changed list: its upstream, its kind, and the tools that it is about, if they are known."""

DRAIN_SECONDS = 20.0
"""Seconds for running calls to finish on an upstream that was changed in, or removed from, the settings."""


class Upstreams(Mapping[str, Upstream]):
    """The upstreams by name, in the order of the configuration. Entering starts to connect to all without waiting; with
    `asleep`, each is connected on its first request.

    `logins` are those of principals; `principal` is the one that uses the gateway alone, or operates it. `came_with`
    returns the verified token with which a principal has come. `recorder` records what they answer. `newer` are the
    revisions after the newest one that are spoken.

    The same task has to enter and exit. Leaving ends every connection and every process, even if it is cancelled.
    """

    def __init__(
        self,
        settings: Mapping[str, UpstreamSettings],
        *,
        on_change: OnChange,
        catalogues: Catalogues | None = None,
        expected: Callable[[], Caller | None] = nobody,
        asleep: bool = False,
        logins: Logins | None = None,
        principal: str = "local",
        came_with: CameWithOf = nobody_came,
        recorder: "Recorder | None" = None,
        newer: tuple[str, ...] = (),
    ) -> None:
        self._newer = newer
        self._asleep = asleep
        self._recorder = recorder
        self._logins = logins
        self._principal = principal
        self._came_with = came_with
        self._on_change = on_change
        self._catalogues = catalogues
        self._expected = expected
        self.attendance = Attendance()
        """The hosts that are present, as reported by the ports that serve them."""
        self._launches = LaunchTurns()
        self._members = {name: self._made(name, one) for name, one in settings.items()}
        self._tasks: TaskGroup | None = None
        self._owners: TaskGroup | None = None
        self._leaving = anyio.Event()
        self._stopped = anyio.Event()
        self._owned: dict[Upstream, anyio.Event] = {}
        """The upstreams with an owner task, including former members, each with an event for the end of that task."""

    def __getitem__(self, name: str) -> Upstream:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._own_all)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._tasks is not None
        self._leaving.set()
        self._stop_all()
        with anyio.move_on_after(STOP_GRACE, shield=True):
            await self._stopped.wait()
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    async def settled(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until no upstream is starting, and return whether that is so."""
        with anyio.move_on_after(timeout):
            for upstream in self._members.values():
                await upstream.ready(timeout)
        return not any(upstream.state.is_pending for upstream in self._members.values())

    def settings_of(self, name: str) -> UpstreamSettings | None:
        """Return the settings of an upstream; None if there is none of this name."""
        return self._members[name].settings if name in self._members else None

    def logged_in(self, name: str, principal: str) -> None:
        """Connect to an upstream, if it is still there, with the new login of a principal."""
        if name in self._members:
            self._members[name].logged_in(principal)

    def attending(self, host: str) -> AbstractContextManager[None]:
        """Mark a host (`gateway.upstream.connection.owners.host_of`) as present inside the context, so that it keeps
        its sessions."""
        return self.attendance.attending(host)

    def left(self, session: str) -> None:
        """Release everything in the upstreams that belonged to a host's session, which has ended."""
        for upstream in self._members.values():
            upstream.left(session)

    def moved(self, name: str, owner: str) -> None:
        """Release what belonged to an owner in an upstream, whose state another replica of the gateway has now."""
        if name in self._members:
            self._members[name].moved(owner)

    def apply(self, settings: Mapping[str, UpstreamSettings], *, drain: float = DRAIN_SECONDS) -> None:
        """Apply other settings at once and as a whole: upstreams are added, removed, and replaced if they changed.

        A replaced or removed upstream gets no new calls; its running calls may finish within `drain` seconds before it
        is stopped. Its successor is available at once, with the last known lists, and connects when the old one is
        gone. If only `tools` or `timeout` changed, nothing reconnects. `on_change` is called for every changed list.
        """
        if self._leaving.is_set():
            return
        news: list[_News] = []
        # Others may be iterating over the members, in threads too, so they are replaced as a whole.
        before, members = dict(self._members), dict[str, Upstream]()
        for name, wanted in settings.items():
            member = before.pop(name, None)
            if member is None:
                members[name] = self._started(name, wanted)
            elif needs_restart(member.settings, wanted):
                members[name] = self._started(name, wanted, member)
                self._retire(member, drain)
                news += [] if wanted.enabled else _lists_of(member)
            else:
                members[name] = member
                if any(getattr(member.settings, key) != getattr(wanted, key) for key in _LISTED):
                    # Rules decide about the tools otherwise than before if the upstream becomes read-only.
                    is_ruled = member.settings.read_only != wanted.read_only
                    news.append((name, "tools", None if is_ruled else member.all_tools()))
                member.adopt(wanted)
        self._members = members
        for member in before.values():
            self._retire(member, drain)
            news += _lists_of(member)
        for name, kind, tools in news:
            self._on_change(name, kind, None, tools)

    def restart(self, name: str, *, drain: float = DRAIN_SECONDS) -> None:
        """Replace an upstream by a new one with the same settings, as `apply` replaces one that changed.

        Does nothing if there is none of this name, or the gateway is ending.
        """
        member = self._members.get(name)
        if member is None or self._leaving.is_set():
            return
        self._members = {**self._members, name: self._started(name, member.settings, member)}
        self._retire(member, drain)

    def _made(self, name: str, settings: UpstreamSettings) -> Upstream:
        return Upstream(
            name,
            settings,
            on_change=self._on_change,
            catalogues=self._catalogues,
            expected=self._expected,
            attendance=self.attendance,
            launches=self._launches,
            asleep=self._asleep,
            logins=self._logins,
            principal=self._principal,
            came_with=self._came_with,
            recorder=self._recorder,
            newer=self._newer,
        )

    def _started(self, name: str, settings: UpstreamSettings, predecessor: Upstream | None = None) -> Upstream:
        upstream = self._made(name, settings)
        if predecessor is not None and settings.enabled:
            upstream.inherit(predecessor)
        if self._owners is not None:
            self._begin(self._owners, upstream)
        return upstream

    def _retire(self, upstream: Upstream, drain: float) -> None:
        if self._owners is not None and upstream in self._owned:
            self._owners.start_soon(self._drained, upstream, drain, name=f"upstream {upstream.name}, leaving")

    async def _drained(self, upstream: Upstream, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await upstream.quiet()
        upstream.stop(Retired())

    def _begin(self, owners: TaskGroup, upstream: Upstream) -> None:
        # Two upstreams of one name at the same time could conflict: one port, one lock, one browser's folder.
        earlier = [ended for one, ended in self._owned.items() if one.name == upstream.name]
        self._owned[upstream] = anyio.Event()
        owners.start_soon(self._own, upstream, earlier, name=f"upstream {upstream.name}")

    async def _own(self, upstream: Upstream, earlier: Sequence[anyio.Event]) -> None:
        try:
            for ended in earlier:
                await ended.wait()
            await upstream.run()
        finally:
            self._owned.pop(upstream).set()

    def _stop_all(self) -> None:
        for upstream in {*self._members.values(), *self._owned}:
            upstream.stop()

    async def _own_all(self) -> None:
        try:
            async with anyio.create_task_group() as self._owners:
                for upstream in self._members.values():
                    self._begin(self._owners, upstream)
                try:
                    await self._leaving.wait()
                finally:
                    # At once, even if the whole gateway is cancelled, since processes take seconds to end, and requests
                    # that wait for a start have to be answered before the port closes.
                    self._stop_all()
        finally:
            self._owners = None
            self._stopped.set()


def _lists_of(upstream: Upstream) -> list[_News]:
    """Return the lists that change when this upstream is removed."""
    lists = {
        "tools": upstream.tools(),
        "prompts": upstream.prompts(),
        "resources": (*upstream.resources(), *upstream.templates()),
    }
    tools = upstream.all_tools()
    return [(upstream.name, kind, tools if kind == "tools" else None) for kind, items in lists.items() if items]

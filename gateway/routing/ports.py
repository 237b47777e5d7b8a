"""What routing needs of the rooms below it, so that it can be tested without processes, stores and pictures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from gateway.config.schema import UpstreamSettings
from gateway.core.model.envelope import Envelope
from gateway.core.model.notes import Note
from gateway.core.model.profile import Profile
from gateway.core.model.wire import WireObject
from gateway.upstream import UpstreamState
from gateway.upstream.calls import CallLimits, ProgressCallback


class AnUpstream(Protocol):
    """One upstream server: what it is like now, what it last said that it has, and how to ask it."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> UpstreamState: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def settings(self) -> UpstreamSettings: ...
    @property
    def capabilities(self) -> Mapping[str, Any]: ...

    def tools(self) -> Sequence[WireObject]: ...
    def resources(self) -> Sequence[WireObject]: ...
    def templates(self) -> Sequence[WireObject]: ...
    async def ready(self, timeout: float) -> bool: ...
    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout: CallLimits,
        on_progress: ProgressCallback | None = None,
    ) -> dict[str, Any]: ...


class TheUpstreams(Protocol):
    """All upstreams, by name, in the order of the configuration."""

    def __getitem__(self, name: str, /) -> AnUpstream: ...
    def __iter__(self) -> Iterator[str]: ...


class OwnTools(Protocol):
    """The gateway's own tools and stored content."""

    def tools(self) -> Sequence[WireObject]: ...
    async def resources(self, *, owner: str) -> Sequence[WireObject]: ...
    async def request(
        self, method: str, params: Mapping[str, Any], *, owner: str, profile: Profile
    ) -> dict[str, Any]: ...


class AShaped(Protocol):
    """A shaped result, what was changed in it, and the envelope that it was made of."""

    @property
    def result(self) -> dict[str, Any]: ...
    @property
    def notes(self) -> Sequence[Note]: ...
    @property
    def envelope(self) -> Envelope: ...


class AShaper(Protocol):
    """Shapes a raw result for a profile."""

    async def shape(
        self, result: WireObject, profile: Profile, *, owner: str, notes: tuple[Note, ...] = ()
    ) -> AShaped: ...

"""Protocols for what routing needs of the rooms below: it can be tested without processes, stores and images."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from gateway.config.content_settings import LimitSettings
from gateway.config.upstream_settings import UpstreamSettings
from gateway.content.shaping import Reach
from gateway.core.model.caller import Caller
from gateway.core.model.envelope import Envelope
from gateway.core.model.json_size import Size
from gateway.core.model.notes import Note
from gateway.core.model.wire import WireObject
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import Accepts
from gateway.core.tokens import Lengths
from gateway.core.tools.arguments import Parameter, PossibleForms
from gateway.core.tools.catalogue import WithheldTool
from gateway.errors import Failure
from gateway.telemetry.audit import AuditEntry
from gateway.upstream import UpstreamState
from gateway.upstream.bridging.bridge import BridgedUpstream
from gateway.upstream.connection.request_context import RequestContext

Ask = Callable[[str, str, Mapping[str, Any], RequestContext], Awaitable[dict[str, Any]]]
"""Asks an upstream (name, method, params) for a host's request; returns the raw result. Raises UpstreamError."""

ReadResource = Callable[[str], Awaitable[Mapping[str, Any]]]
"""Reads an upstream's resource by URI in the caller's own session; returns the raw result of `resources/read`."""


class ListsPort(Protocol):
    """An upstream's latest lists, unmodified. `hints` has the cache hints of each list."""

    @property
    def tools(self) -> Sequence[WireObject]: ...
    @property
    def resources(self) -> Sequence[WireObject]: ...
    @property
    def templates(self) -> Sequence[WireObject]: ...
    @property
    def prompts(self) -> Sequence[WireObject]: ...
    @property
    def hints(self) -> Mapping[str, Mapping[str, Any]]: ...


class UpstreamPort(BridgedUpstream, Protocol):
    """One upstream server: its state, its lists, and requests to it."""

    @property
    def principal(self) -> str: ...
    @property
    def is_personal(self) -> bool: ...
    @property
    def state(self) -> UpstreamState: ...
    @property
    def cause(self) -> str | None: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def capabilities(self) -> Mapping[str, Any]: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def instructions(self) -> str | None: ...

    @property
    def server_info(self) -> Mapping[str, Any] | None: ...

    def for_principal(self, principal: str) -> "UpstreamPort": ...
    def lists_for(self, caller: Caller | None = None) -> ListsPort: ...
    def listed_kind(self, caller: Caller) -> str | None: ...
    async def ready(self, timeout: float) -> bool: ...
    async def prepare(self, caller: Caller, seconds: float = 0.0, *, hears: bool = True) -> None: ...
    async def subscribe(self, uri: str, caller: Caller) -> Callable[[], None]: ...
    async def roots_changed(self, session: str) -> None: ...
    def left(self, session: str) -> None: ...


class UpstreamsPort(Protocol):
    """All upstreams, by name, in the order of the configuration."""

    def __getitem__(self, name: str, /) -> UpstreamPort: ...
    def __iter__(self) -> Iterator[str]: ...
    def attending(self, host: str) -> AbstractContextManager[None]: ...


class OwnTools(Protocol):
    """The gateway's own tools and stored content."""

    def tools(self) -> Sequence[WireObject]: ...
    async def resources(self, *, owner: str) -> Sequence[WireObject]: ...
    def prompts(self) -> Sequence[WireObject]: ...
    async def request(
        self, method: str, params: Mapping[str, Any], *, owner: str, profile: Profile, read: ReadResource | None = None
    ) -> dict[str, Any]: ...


class LoginOffer(Protocol):
    """A link with which a principal can log in to an upstream, for a while."""

    @property
    def url(self) -> str: ...
    async def wait(self, seconds: float) -> bool:
        """Wait at most `seconds` for the login, and return whether it was given."""
        ...


class LoginsPort(Protocol):
    """Logins to upstreams in a browser."""

    async def offer(self, upstream: str, principal: str) -> LoginOffer | None:
        """Return a link for a login; None if no browser could return from it."""
        ...


class CalibrationPort(Protocol):
    """The calibration tools, for the hosts that are to be calibrated now."""

    def tools(self, caller: Caller, profile: Profile) -> Sequence[WireObject]: ...
    async def call(
        self, tool: str, arguments: Mapping[str, Any], caller: Caller, profile: Profile
    ) -> dict[str, Any]: ...


class PinsPort(Protocol):
    """Pins of upstreams' tools (implemented by `gateway.upstream.pins.Pins`)."""

    def look(
        self, upstream: UpstreamPort, caller: Caller, tools: Sequence[WireObject]
    ) -> Callable[[], Sequence[WithheldTool]]: ...


class ArgumentsPort(Protocol):
    """Puts content into the arguments of calls (implemented by `gateway.content.arguments.Arguments`)."""

    def giving(self, settings: UpstreamSettings) -> PossibleForms: ...
    def reconfigure(self, limits: LimitSettings) -> None: ...
    async def unmarked(
        self, arguments: object, parameters: Sequence[Parameter], *, owner: str
    ) -> tuple[tuple[str, str], ...]: ...
    def resolved(
        self,
        arguments: Mapping[str, Any],
        parameters: Sequence[Parameter],
        *,
        owner: str,
        upstream: str,
        settings: UpstreamSettings,
    ) -> AbstractAsyncContextManager[Mapping[str, Any]]: ...


class ShapedPort(Protocol):
    """A shaped result, the notes of what was changed in it, the envelope that it was made from, the handles of the
    content that was kept for it, and the known lengths of its media."""

    @property
    def result(self) -> dict[str, Any]: ...
    @property
    def notes(self) -> Sequence[Note]: ...
    @property
    def envelope(self) -> Envelope: ...
    @property
    def kept(self) -> Sequence[str]: ...
    @property
    def lengths(self) -> Lengths: ...


class AuditTrailPort(Protocol):
    """Records requests: who asked for what, what was decided, returned and shown (`gateway.telemetry.audit`)."""

    def begin(self, method: str, params: Mapping[str, Any], caller: Caller, profile: str) -> AuditEntry: ...
    def approval(self, principal: str, upstream: str, tool: str, verdict: str, rule: str, by: str = "") -> None: ...


class ShaperPort(Protocol):
    """Shapes a raw result for a profile."""

    async def shape(
        self,
        result: WireObject,
        profile: Profile,
        *,
        owner: str,
        notes: tuple[Note, ...] = (),
        reach: Reach | None = None,
        origin: str | None = None,
        app: bool = False,
        size: Size | None = None,
        accepts: Accepts = ...,
    ) -> ShapedPort: ...

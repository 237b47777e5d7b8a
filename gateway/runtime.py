"""The composition root: the one place that builds the edges and wires them together."""

import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gateway.config.embeddings_settings import EmbeddingsSettings
from gateway.config.find_config import cache_folder, state_folder
from gateway.config.schema import Settings
from gateway.config.settings_diff import Difference, compare, live_part
from gateway.config.upstream_settings import UpstreamSettings
from gateway.core.model.caller import Caller
from gateway.core.model.claims import CameWithOf
from gateway.core.near_names import which_name
from gateway.errors import InvalidRequest

if TYPE_CHECKING:
    from gateway.admission.admission import Admission
    from gateway.content.arguments.files import TemporaryFiles
    from gateway.content.describe import Describer
    from gateway.content.describe.tools import CallTool
    from gateway.content.fetch import Fetcher
    from gateway.content.links.file_transfers import FileTransfers
    from gateway.content.links.links import Links
    from gateway.content.shaping import Shaper
    from gateway.content.shaping.files import HostFiles
    from gateway.content.shaping.repair_request import Repairer
    from gateway.content.store import KeptStore
    from gateway.core.model.tool_facts import ToolFacts
    from gateway.core.profiles.profile import Profile, ProfileSource
    from gateway.embeddings.client import EmbeddingsClient
    from gateway.routing import Router
    from gateway.routing.calibration import Calibration, HostWorkspace
    from gateway.routing.code_mode import CodeMode
    from gateway.routing.long_calls import LongCalls
    from gateway.routing.replica_port import ReplicaPort
    from gateway.telemetry import Telemetry
    from gateway.telemetry.audit.trail import AuditTrail
    from gateway.telemetry.media import CountedMedia
    from gateway.upstream import Catalogues, Upstreams
    from gateway.upstream.authorization.login_desk import LoginDesk
    from gateway.upstream.authorization.ports import Logins
    from gateway.upstream.bridging.bridge import Bridge
    from gateway.upstream.pins import Pins
    from gateway.upstream.recording.recorder import Recorder, RecordOptions


@dataclass(frozen=True)
class _Rooms:
    """The parts that are opened once for a gateway, and closed with it."""

    store: "KeptStore"
    links: "Links"
    media: "CountedMedia"
    bridge: "Bridge"
    long_calls: "LongCalls"
    transfers: "FileTransfers | None"
    describer: "Describer | None"
    files: "HostFiles"
    temporary: "TemporaryFiles"
    admission: "Admission"
    code_mode: "CodeMode | None"

    def shaper(self, settings: Settings) -> "Shaper":
        from gateway.content.shaping import Shaper

        return Shaper(
            self.store,
            self.media,
            max_blocks=settings.limits.blocks,
            describer=self.describer,
            files=self.files,
            links=self.links,
            measures=settings.tokens.count,
        )


@dataclass
class Gateway:
    """A running gateway, whose settings can be replaced while it runs."""

    router: "Router"
    upstreams: "Upstreams"
    settings: Settings
    """The settings in force."""
    calibration: "Calibration"
    pins: "Pins"
    logins: "Logins"
    """The logins of principals to upstreams."""
    login_desk: "LoginDesk"
    """Offers of logins: none until something serves their pages."""
    _rooms: "_Rooms"
    audit: "AuditTrail | None" = None
    """The audit trail, if there is one."""
    recorder: "Recorder | None" = None
    """The recorder of what the upstreams answer, if they are recorded."""

    @property
    def store(self) -> "KeptStore":
        """The store of content."""
        return self._rooms.store

    @property
    def links(self) -> "Links":
        """Links to stored content: none until something serves them."""
        return self._rooms.links

    @property
    def transfers(self) -> "FileTransfers | None":
        """The files that hosts send and fetch beside the protocol, if they may."""
        return self._rooms.transfers

    @property
    def media(self) -> "CountedMedia":
        """The workers that decode, draw and convert media."""
        return self._rooms.media

    def preview(self) -> "Shaper":
        """Return a shaper that shows what results become, with a store that nothing else uses, and no describer."""
        from gateway.content.shaping import Shaper
        from gateway.content.store import MemoryStore

        return Shaper(MemoryStore(self.settings.store), self._rooms.media, max_blocks=self.settings.limits.blocks)

    def repairer(self) -> "Repairer":
        """The component that repairs requests to model APIs; it shares the store, so it knows hosts' handles."""
        from gateway.content.shaping.effect_cache import RememberingMedia
        from gateway.content.shaping.repair_request import Repairer

        history = self.settings.model_proxy.history
        return Repairer(self.store, RememberingMedia(self._rooms.media), history, self._rooms.describer)

    def join(self, replica: "ReplicaPort") -> None:
        """Be one of several replicas, from before the first request on."""
        upstreams = self.upstreams

        def owner_for(upstream: str, caller: Caller) -> str | None:
            return upstreams[upstream].for_principal(caller.principal).owner_for(caller)

        self._rooms.bridge.join(replica.own, replica.state_key)
        self.logins.named = lambda secret: f"{replica.own}.{secret}"
        self.router.join(replica, owner_for)

    async def logged_in(self, upstream: str, principal: str) -> None:
        """Use a login that another process has completed. Raises InvalidRequest if there is no such upstream."""
        await self.logins.reread(self._known(upstream), principal)
        self.upstreams.logged_in(upstream, principal)
        self.login_desk.logged_in(upstream, principal)
        self._record_login(upstream, principal)

    async def log_out(self, upstream: str, principal: str) -> None:
        """Revoke and forget a login, and end what was opened with it.

        Raises:
            InvalidRequest: there is no such upstream.
            UpstreamError: the login cannot be forgotten.
        """
        await self.logins.forget(self._known(upstream), principal)
        self.upstreams[upstream].logged_out(principal)
        self._record_login(upstream, principal, "logged out")

    def login_ended(self, upstream: str, principal: str, issuer: str | None) -> None:
        """Use a login that was given in a browser; without an issuer, it failed."""
        if issuer is not None:
            self.upstreams.logged_in(upstream, principal)
        self._record_login(upstream, principal, "failed" if issuer is None else "ok", issuer or "")

    def _record_login(self, upstream: str, principal: str, outcome: str = "ok", issuer: str = "") -> None:
        """Record in the audit trail, if there is one, what became of a login to an upstream."""
        if self.audit is not None:
            self.audit.login(principal, upstream, outcome, issuer)

    def _known(self, upstream: str) -> str:
        if upstream not in self.upstreams:
            raise InvalidRequest(f"there is no upstream {upstream!r}", remedy=which_name(upstream, self.upstreams))
        return upstream

    def apply(self, settings: Settings) -> Difference:
        """Apply as much of other settings as possible while running, atomically; return what they change.

        Raises, with nothing changed:
            ConfigError: [gateway] profile does not exist, or a user's profile has the name of a built-in one.
            ProfileError: a profile is inconsistent.
        """
        from gateway.config.builtin_profiles import load_profiles

        profiles = load_profiles(settings)
        difference = compare(self.settings, settings)
        self.settings = live_part(self.settings, settings)
        self.store.resize(self.settings.store)
        shaper = self._rooms.shaper(self.settings)
        self.pins.reconfigure(self.settings.pins.mode)
        self.upstreams.apply(self.settings.upstreams)
        self.router.reconfigure(self.settings, profiles, shaper)
        if self.audit is not None:
            self.audit.reconfigure(self.settings)
        if self.recorder is not None:
            self.recorder.reconfigure(self.settings)
        return difference


@asynccontextmanager
async def open_gateway(settings: Settings, *, profile: str | None = None) -> "AsyncGenerator[Router]":
    """Run a gateway and yield only its router; see `run_gateway`."""
    async with run_gateway(settings, profile=profile) as gateway:
        yield gateway.router


@asynccontextmanager
async def run_gateway(
    settings: Settings,
    *,
    profile: str | None = None,
    expected: "Callable[[], Caller | None] | None" = None,
    over_http: bool = False,
    asleep: bool = False,
    principal: str = Caller().principal,
    came_with: CameWithOf = lambda _: None,
    record: "RecordOptions | None" = None,
) -> AsyncGenerator[Gateway]:
    """Run a gateway: its upstreams connect in the background, and its router answers at once.

    `profile` is for every host that does not choose one itself; it overrides `[gateway] profile`. `expected` returns
    the host that will be the only one, as soon as it is known: upstreams are opened for it. `over_http`: links to
    stored content will be served, so tools that want a URL can be given one. `asleep`: no upstream is started before
    the first request to it or `Upstream.wake`. `principal` is whoever uses the gateway alone, or operates it.
    `came_with` returns the token of its issuer with which a principal has come, for upstreams that get one for it, or
    are told what it says. `record`: where to record what the upstreams answer.
    On leaving, every process and connection that was opened is closed.

    Raises:
        ConfigError: [gateway] profile does not exist, or the audit trail or the recording cannot be written.
        ProfileError: `profile` does not exist, or a profile is inconsistent.
    """
    # Everything heavy is imported here, so that a command that needs no gateway does not pay for it.
    from gateway.config.builtin_profiles import load_profiles
    from gateway.content.arguments import Arguments
    from gateway.core.model.revisions import NEWEST_HANDSHAKE
    from gateway.core.profiles.match_profile import find_profile
    from gateway.routing import Router
    from gateway.routing.calibration import Calibration
    from gateway.routing.own_tools import OwnToolsServer
    from gateway.routing.own_tools.gateway_put import PutTool
    from gateway.telemetry import Telemetry
    from gateway.telemetry.audit.trail import open_audit_trail
    from gateway.upstream import RequestContext, Upstreams
    from gateway.upstream.upstream import ITSELF

    profiles = load_profiles(settings)
    if profile is not None:
        find_profile(profiles, profile)

    async def call_tool(upstream: str, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if upstream not in upstreams:
            raise InvalidRequest(f"there is no upstream {upstream!r}", remedy="see describe.tool")
        params, asked = {"name": tool, "arguments": arguments}, upstreams[upstream]
        return await asked.request("tools/call", params, RequestContext(own))

    def changed(upstream: str, kind: str, principal: str | None, tools: "frozenset[ToolFacts] | None" = None) -> None:
        router.upstream_changed(upstream, kind, principal, tools)

    def settings_of(upstream: str) -> UpstreamSettings | None:
        return upstreams.settings_of(upstream)

    def login_ended(upstream: str, principal: str, issuer: str | None) -> None:
        gateway.login_ended(upstream, principal, issuer)

    def reached_by(name: str) -> "tuple[UpstreamSettings, Mapping[str, Any] | None] | None":
        return (upstreams[name].settings, upstreams[name].server_info) if name in upstreams else None

    # Calls on behalf of no host (the model proxy's descriptions) have sessions of their own, apart from every host's.
    own = Caller(revision=NEWEST_HANDSHAKE, client_name=settings.gateway.name, principal=ITSELF)
    raised: Exception | None = None
    logins, desk = open_logins(settings, settings_of, login_ended, over_http=over_http, came_with=came_with)
    recorder = None if record is None else _recorder(record, settings)
    upstreams = Upstreams(
        settings.upstreams,
        on_change=changed,
        catalogues=_catalogues(),
        expected=_awaited(expected, profiles, profile or settings.gateway.profile, settings.gateway.model),
        asleep=asleep,
        logins=logins,
        principal=principal,
        came_with=came_with,
        recorder=recorder,
        newer=settings.experimental.newer_revisions,
    )
    telemetry, pins = Telemetry(content=settings.logging.content), _pins(settings)
    telemetry.metrics.upstreams = upstreams
    async with (
        recorder or nullcontext(),
        open_audit_trail(settings, reached_by) as audit,
        _opened(settings, telemetry, call_tool) as rooms,
    ):
        fetch, limits = _fetching(settings), settings.limits
        put_tool = PutTool(rooms.store, rooms.links, folders=settings.content.folders, fetch=fetch)
        own_tools = OwnToolsServer(rooms.store, rooms.media, put_tool)
        calibration = Calibration(rooms.media, _surroundings(lambda: gateway))
        arguments = Arguments(
            rooms.store, limits, rooms.temporary, fetch=fetch, links=rooms.links if over_http else None
        )
        answering = (telemetry, rooms.bridge, calibration, arguments, audit, pins, desk)
        router = Router(
            *(upstreams, own_tools, rooms.shaper(settings), profiles, settings, profile, *answering),
            long_calls=rooms.long_calls,
            admission=rooms.admission,
            code_mode=rooms.code_mode,
            embedder_for=_embedder,
            files=rooms.transfers,
        )
        gateway = Gateway(router, upstreams, settings, calibration, pins, logins, desk, rooms, audit, recorder)
        async with upstreams:
            try:
                yield gateway
            except Exception as error:
                # Raised below, once everything is closed: the task groups here would wrap it in groups of their own.
                raised = error
    if raised is not None:
        raise raised


@asynccontextmanager
async def _opened(settings: Settings, telemetry: "Telemetry", call_tool: "CallTool") -> AsyncGenerator[_Rooms]:
    from gateway.admission.admission import Admission
    from gateway.content.arguments.files import temporary_files
    from gateway.content.describe import open_describer
    from gateway.content.links.links import Links
    from gateway.content.media import MediaWorkers
    from gateway.content.shaping.files import HostFiles
    from gateway.content.store import open_store
    from gateway.routing.long_calls import open_long_calls
    from gateway.telemetry.media import CountedMedia
    from gateway.upstream.bridging.bridge import open_bridge

    cache = cache_folder(os.environ)
    admission = telemetry.metrics.admission = Admission(settings.overload, media_workers=settings.media.workers)
    most_waiting, is_short = admission.capacity.media_queue, admission.pressure.is_short
    async with (
        admission.watching(),
        open_store(settings.store) as store,
        temporary_files(cache / "arguments" if cache is not None else None) as temporary,
        MediaWorkers(settings.media, most_waiting=most_waiting, is_short=is_short) as media,
        open_bridge() as bridge,
        open_long_calls(settings.long_calls) as long_calls,
        open_describer(settings.describe, media, call_tool) as describer,
        HostFiles(settings.files) as files,
        _open_code_mode(settings, store) as code_mode,
    ):
        telemetry.metrics.store = lambda: store.usage
        telemetry.metrics.media_waiting = lambda: media.waiting
        telemetry.metrics.long_calls = lambda: len(long_calls)
        links = Links(settings.content.link_lifetime, settings.gateway.public_url)
        counted = CountedMedia(media, telemetry.metrics)
        transfers = _file_transfers(settings, store, links)
        rooms = (store, links, counted, bridge, long_calls, transfers, describer, files, temporary, admission)
        yield _Rooms(*rooms, code_mode)


def _awaited(
    expected: "Callable[[], Caller | None] | None",
    profiles: "Mapping[str, Profile]",
    configured: str | None,
    model: str | None,
) -> "Callable[[], Caller | None]":
    """Return the function that returns the expected host as upstreams are to know it, if it is known already."""
    from gateway.core.profiles.match_profile import able, choose_profile

    def awaited() -> "Caller | None":
        # This also runs before there is a router, so it uses the profiles of the start, which is when it matters.
        caller = None if expected is None else expected()
        return None if caller is None else able(caller, choose_profile(profiles, caller, configured, model).profile)

    return awaited


def _catalogues() -> "Catalogues | None":
    from gateway.upstream import Catalogues

    cache = cache_folder(os.environ)
    return Catalogues(cache / "catalogues") if cache is not None else None


def open_logins(
    settings: Settings,
    settings_of: "Callable[[str], UpstreamSettings | None]",
    on_end: "Callable[[str, str, str | None], None]" = lambda upstream, principal, issuer: None,
    *,
    over_http: bool = False,
    came_with: CameWithOf = lambda _: None,
) -> "tuple[Logins, LoginDesk]":
    """Return the logins to the upstreams that have these settings, and the desk that offers them.

    `on_end` is called with each login that ends there; see `LoginDesk`. `came_with` as for `run_gateway`.
    """
    from gateway.upstream.authorization.login_desk import LoginDesk
    from gateway.upstream.authorization.logins import UpstreamLogins
    from gateway.upstream.authorization.vault import open_vault

    public_url = settings.gateway.public_url if over_http else None
    vault = open_vault(settings.logins, state_folder(os.environ))

    def subject_of(principal: str) -> str | None:
        found = came_with(principal)
        return None if found is None else found.token

    logins = UpstreamLogins(vault, settings_of, public_url=lambda: public_url, subject_of=subject_of)
    return logins, LoginDesk(logins, on_end)


def _surroundings(gateway: "Callable[[], Gateway]") -> "HostWorkspace":
    """The parts of this gateway that calibration needs."""
    from anyio import to_thread

    from gateway.config.builtin_profiles import load_profiles, measured_names
    from gateway.config.local_profiles import write_local
    from gateway.core.tools.catalogue import OWN
    from gateway.routing.calibration import HostWorkspace, KeptProfile

    def base_of(name: str) -> "Profile":
        settings = gateway().settings
        profiles, measured = load_profiles(settings), measured_names(settings)
        lineage = (name, *profiles[name].lineage)
        return profiles[next(each for each in lineage if each not in measured)]

    async def keep(name: str, source: "ProfileSource", caller: "Caller") -> KeptProfile:
        path = await to_thread.run_sync(write_local, os.environ, name, source)
        gateway().apply(gateway().settings)
        return KeptProfile(str(path), gateway().router.profile_of(caller).name == name)

    return HostWorkspace(
        base_of=base_of,
        model_of=lambda caller: gateway().settings.gateway.model or caller.model,
        keep=keep,
        changed=lambda: gateway().router.upstream_changed(OWN, "tools"),
        today=lambda: datetime.now(tz=UTC).date(),
        clock=time.time,
    )


def _pins(settings: Settings) -> "Pins":
    from gateway.upstream.pins import Pins

    folder = state_folder(os.environ)
    return Pins(folder / "pins" if folder is not None else None, settings.pins.mode)


def _embedder(settings: EmbeddingsSettings) -> "EmbeddingsClient":
    from gateway.embeddings.client import EmbeddingsClient

    return EmbeddingsClient(settings)


def _recorder(record: "RecordOptions", settings: Settings) -> "Recorder":
    from gateway.upstream.recording.recorder import Recorder

    return Recorder(record, settings)


def _open_code_mode(settings: Settings, store: "KeptStore") -> AbstractAsyncContextManager["CodeMode | None"]:
    """Open code mode; nothing of it is loaded if it is off."""
    if not settings.code_mode.enabled:
        return nullcontext()
    from gateway.routing.code_mode import open_code_mode

    return open_code_mode(settings.code_mode, store)


def _file_transfers(settings: Settings, store: "KeptStore", links: "Links") -> "FileTransfers | None":
    if not settings.experimental.files:
        return None
    from gateway.content.links.file_transfers import FileTransfers

    return FileTransfers(store, links, settings.content.max_upload_bytes)


def _fetching(settings: Settings) -> "Fetcher | None":
    """Return the fetcher of URLs; None if nothing may be fetched."""
    if not settings.fetch.allow:
        return None
    from gateway.content.fetch import Fetcher

    return Fetcher(settings.fetch)

"""A gateway: its edges are built and wired together here, and nowhere else."""

import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
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
from gateway.runtime.logins import open_logins
from gateway.runtime.parts import open_parts

if TYPE_CHECKING:
    from gateway.content.fetch import Fetcher
    from gateway.content.links.file_transfers import FileTransfers
    from gateway.content.links.links import Links
    from gateway.content.shaping import Shaper
    from gateway.content.shaping.repair_request import Repairer
    from gateway.content.store import KeptStore
    from gateway.core.model.tool_facts import ToolFacts
    from gateway.core.profiles.profile import Profile, ProfileSource
    from gateway.embeddings.client import EmbeddingsClient
    from gateway.routing import Router
    from gateway.routing.calibration import Calibration, HostWorkspace
    from gateway.routing.replica_port import ReplicaPort
    from gateway.runtime.parts import Parts
    from gateway.telemetry.audit.trail import AuditTrail
    from gateway.telemetry.media import CountedMedia
    from gateway.upstream import Catalogues, Upstreams
    from gateway.upstream.authorization.login_desk import LoginDesk
    from gateway.upstream.authorization.ports import Logins
    from gateway.upstream.pins import Pins
    from gateway.upstream.recording.recorder import Recorder, RecordOptions


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
    _parts: "Parts"
    audit: "AuditTrail | None" = None
    """The audit trail, if there is one."""
    recorder: "Recorder | None" = None
    """The recorder of what the upstreams answer, if they are recorded."""

    @property
    def store(self) -> "KeptStore":
        """The store of content."""
        return self._parts.store

    @property
    def links(self) -> "Links":
        """Links to stored content: none until something serves them."""
        return self._parts.links

    @property
    def transfers(self) -> "FileTransfers | None":
        """The files that hosts send and fetch beside the protocol, if they may."""
        return self._parts.transfers

    @property
    def media(self) -> "CountedMedia":
        """The workers that decode, draw and convert media."""
        return self._parts.media

    def preview(self) -> "Shaper":
        """Return a shaper that shows what results become, with a store that nothing else uses, and no describer."""
        from gateway.content.shaping import Shaper
        from gateway.content.store import MemoryStore

        return Shaper(MemoryStore(self.settings.store), self._parts.media, max_blocks=self.settings.limits.blocks)

    def repairer(self) -> "Repairer":
        """The component that repairs requests to model APIs; it shares the store, so it knows hosts' handles."""
        from gateway.content.shaping.effect_cache import RememberingMedia
        from gateway.content.shaping.repair_request import Repairer

        history = self.settings.model_proxy.history
        return Repairer(self.store, RememberingMedia(self._parts.media), history, self._parts.describer)

    def join(self, replica: "ReplicaPort") -> None:
        """Be one of several replicas, from before the first request on."""
        upstreams = self.upstreams

        def owner_for(upstream: str, caller: Caller) -> str | None:
            return upstreams[upstream].for_principal(caller.principal).owner_for(caller)

        self._parts.bridge.join(replica.own, replica.state_key)
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
        shaper = self._parts.shaper(self.settings)
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
        open_parts(settings, telemetry, call_tool) as parts,
    ):
        fetch, limits = _fetching(settings), settings.limits
        put_tool = PutTool(parts.store, parts.links, folders=settings.content.folders, fetch=fetch)
        own_tools = OwnToolsServer(parts.store, parts.media, put_tool)
        calibration = Calibration(parts.media, _host_workspace(lambda: gateway))
        arguments = Arguments(
            parts.store, limits, parts.temporary, fetch=fetch, links=parts.links if over_http else None
        )
        answering = (telemetry, parts.bridge, calibration, arguments, audit, pins, desk)
        router = Router(
            *(upstreams, own_tools, parts.shaper(settings), profiles, settings, profile, *answering),
            long_calls=parts.long_calls,
            admission=parts.admission,
            code_mode=parts.code_mode,
            embedder_for=_embedder,
            files=parts.transfers,
        )
        gateway = Gateway(router, upstreams, settings, calibration, pins, logins, desk, parts, audit, recorder)
        async with upstreams:
            try:
                yield gateway
            except Exception as error:
                # Raised below, once everything is closed: the task groups here would wrap it in groups of their own.
                raised = error
    if raised is not None:
        raise raised


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


def _host_workspace(gateway: "Callable[[], Gateway]") -> "HostWorkspace":
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


def _fetching(settings: Settings) -> "Fetcher | None":
    """Return the fetcher of URLs; None if nothing may be fetched."""
    if not settings.fetch.allow:
        return None
    from gateway.content.fetch import Fetcher

    return Fetcher(settings.fetch)

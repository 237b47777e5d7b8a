"""The router: a host's request to whoever can answer it, and the answer in the shape that this host shows best."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from anyio import to_thread

from gateway.bridging.onward import onward
from gateway.config.schema import Settings, Timeouts
from gateway.core.catalogue import OWN, Catalogue, Route
from gateway.core.matching import LOOKED_AT, choose
from gateway.core.model.caller import Caller
from gateway.core.model.notes import Note
from gateway.core.model.profile import Profile
from gateway.core.profiles import narrow
from gateway.core.wording import failure_text, plain, size_words
from gateway.errors import InvalidRequest, UnknownMethod
from gateway.routing.availability import Availability
from gateway.routing.measuring import characters
from gateway.routing.named_files import with_named_files
from gateway.routing.offering import Offering
from gateway.routing.ports import AShaper, OwnTools, TheUpstreams
from gateway.routing.resources import Resources
from gateway.store import URI_SCHEME
from gateway.telemetry import Telemetry
from gateway.telemetry.calls import Call
from gateway.upstream import ProgressCallback

logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[str], None]
"""Told `tools` or `resources` when that list has changed. Must not block."""

_CLIENTS = 512
"""How many clients' profiles are kept in mind; clients name themselves, so this needs a bound."""


class Router:
    """Answers hosts' requests. Nothing in it is locked while an upstream is asked."""

    def __init__(
        self,
        upstreams: TheUpstreams,
        builtin: OwnTools,
        shaper: AShaper,
        profiles: Mapping[str, Profile],
        settings: Settings,
        profile: str | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._upstreams = upstreams
        self._builtin = builtin
        self._shaper = shaper
        self._profiles = profiles
        self._settings = settings
        self._profile = profile
        self._configured = profile or settings.gateway.profile
        self._availability = Availability(upstreams)
        self._offering = Offering(upstreams, builtin, settings.gateway, self._availability)
        self._resources = Resources(upstreams)
        self._chosen: dict[tuple[str | None, ...], Profile] = {}
        self._listeners: list[Listener] = []
        self._telemetry = telemetry or Telemetry()

    @property
    def telemetry(self) -> Telemetry:
        """What is told of this gateway's calls and upstreams."""
        return self._telemetry

    @property
    def upstreams(self) -> TheUpstreams:
        """The upstreams, each with its state and what it last said that it has."""
        return self._upstreams

    @property
    def profile_names(self) -> tuple[str, ...]:
        """The profiles that a host may choose."""
        return tuple(self._profiles)

    async def respond(
        self, method: str, params: Mapping[str, Any], caller: Caller, *, on_progress: ProgressCallback | None = None
    ) -> dict[str, Any]:
        """The result of a request, as wire JSON without what only one revision demands (`bridging` adds that).

        Serves tools/list, tools/call, resources/list, resources/templates/list and resources/read.

        Raises:
            InvalidRequest: malformed, or for something that is not there.
            ProfileError: the caller asks for a profile that does not exist.
            UpstreamError: whoever was asked could not answer; UpstreamRefused carries its own error.
        """
        profile = self.profile_of(caller)
        match method:
            case "tools/call":
                return await self._call(params, caller, on_progress)
            case "resources/read":
                return await self._read(params, caller, profile)
            case "tools/list" | "resources/list" | "resources/templates/list":
                _refuse_cursor(params)
                await self._availability.first(profile.name, profile.wait.tools_list)
            case _:
                raise UnknownMethod(f"{plain(method, 100)!r} is not served")
        match method:
            case "tools/list":
                return {"tools": list(self.catalogue(caller).tools)}
            case "resources/list":
                own = await self._builtin.resources(owner=caller.principal)
                return {"resources": [*self._resources.listed(), *own]}
            case _:
                return {"resourceTemplates": self._resources.templates()}

    def profile_of(self, caller: Caller) -> Profile:
        """The profile in force for a caller, narrowed to its revision.

        Raises:
            ProfileError: the caller asks for a profile that does not exist.
        """
        said = (caller.client_name, caller.client_version, caller.user_agent, caller.profile)
        key = (caller.revision, *(text[:LOOKED_AT] if text is not None else None for text in said))
        profile = self._chosen.get(key)
        if profile is None:
            choice = choose(self._profiles, caller, self._configured)
            client = plain(f"{caller.client_name or 'a client'} {caller.client_version or ''}", 100)
            logger.info("%s, %s: profile %s, because %s", client, caller.revision, choice.profile.name, choice.because)
            if len(self._chosen) >= _CLIENTS:
                self._chosen.clear()
            profile = self._chosen[key] = narrow(choice.profile, caller.revision)
        return profile

    def catalogue(self, caller: Caller) -> Catalogue:
        """What a caller is offered now, without waiting for anybody, and the notes of what was changed or left out."""
        return self._offering.catalogue(self.profile_of(caller), caller.revision)

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool under the name that it was offered by; None when no host was offered it yet."""
        return self._offering.input_schema(name)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Have `listener` told of changed lists; what is returned ends that."""
        # Kept in a box of its own: the same listener may be subscribed twice and ended once.
        entry: Listener = lambda change: listener(change)  # noqa: E731
        self._listeners.append(entry)

        def unsubscribe() -> None:
            if entry in self._listeners:
                self._listeners.remove(entry)

        return unsubscribe

    def upstream_changed(self, upstream: str, kind: str) -> None:
        """An upstream's `tools`, `resources` or `state` changed; called by whoever owns the upstreams."""
        logger.debug("upstream %s: %s changed", upstream, kind)
        if kind in ("tools", "state"):
            self._offering.forget()
        if kind in ("tools", "resources"):
            self._tell(kind)

    def reconfigure(self, settings: Settings, profiles: Mapping[str, Profile], shaper: AShaper) -> None:
        """Take over other settings at once and as a whole; hosts are told if their tools may have changed.

        Requests that are being answered go on with what they began with.
        """
        offered_by = ("prefix", "profile", "name")
        before, after = self._settings.gateway, settings.gateway
        anew = self._profiles != profiles or any(getattr(before, key) != getattr(after, key) for key in offered_by)
        self._settings, self._profiles, self._shaper = settings, profiles, shaper
        self._configured = self._profile or settings.gateway.profile
        self._telemetry.content = settings.logging.content
        self._chosen.clear()
        self._availability.forget()
        self._offering.reconfigure(settings.gateway)
        if anew:
            self._tell("tools")

    def _tell(self, kind: str) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(kind)
            except Exception:
                # A listener is one host's connection; whatever is wrong with it, the others are still told.
                logger.exception("a listener failed")

    async def read_upstream_resource(self, uri: str) -> dict[str, Any]:
        """The raw result of `resources/read` from whichever upstream has the uri."""
        return await self._resources.read(uri, {"uri": uri})

    # -- calls ---------------------------------------------------------------------------------------------------------

    async def _call(
        self, params: Mapping[str, Any], caller: Caller, on_progress: ProgressCallback | None
    ) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise InvalidRequest("tools/call needs the name of a tool")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise InvalidRequest("the arguments of a tool must be an object")
        with self._telemetry.call(caller, self.profile_of(caller).name, name, params) as call:
            call.asked(params.get("arguments"), characters(params.get("arguments") or {}))
            return await self._done(call, name, params, caller, on_progress)

    async def _done(
        self, call: Call, name: str, params: Mapping[str, Any], caller: Caller, on_progress: ProgressCallback | None
    ) -> dict[str, Any]:
        route = await self._offering.route(name, lambda: self.profile_of(caller), caller.revision)
        call.routed(route.upstream, route.tool)
        profile = self.profile_of(caller)
        passed = {**onward(params), "name": route.tool}
        if passed.get("arguments") is None:
            passed.pop("arguments", None)
        # Tasks are not offered, so an upstream must not be asked to make the call one.
        passed.pop("task", None)
        if route.upstream == OWN:
            raw = await self._builtin.request("tools/call", passed, owner=caller.principal, profile=profile)
        else:
            raw = await self._upstreams[route.upstream].request(
                "tools/call", passed, timeout=self._limits(route), on_progress=on_progress
            )
        size = characters(raw)
        call.answered(size)
        whole, notes = await self._with_named_files(self._within_limit(raw, size, route), route)
        shaped = await self._shaper.shape(whole, profile, owner=caller.principal, notes=notes)
        if route.upstream != OWN:
            self._resources.remember(route.upstream, shaped.envelope)
        call.shaped(shaped.result, characters(shaped.result), shaped.notes, is_error=shaped.envelope.is_error)
        return shaped.result

    async def _with_named_files(
        self, raw: Mapping[str, Any], route: Route
    ) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
        settings = None if route.upstream == OWN else self._upstreams[route.upstream].settings
        if settings is None or not settings.files or settings.command is None:
            return raw, ()
        return await to_thread.run_sync(with_named_files, raw, settings.files, settings.cwd)

    def _limits(self, route: Route) -> Timeouts:
        settings = self._upstreams[route.upstream].settings
        special = settings.tools.timeout.get(route.tool)
        return (
            settings.timeout.model_copy(update=special.model_dump(exclude_none=True)) if special else settings.timeout
        )

    def _within_limit(self, raw: Mapping[str, Any], size: int, route: Route) -> Mapping[str, Any]:
        limit = self._settings.limits.result_bytes
        if size <= limit:
            return raw
        sizes = f"{size_words(size)}, and a result may have {size_words(limit)}"
        message = f"{plain(route.tool, 100)} of {route.upstream} returned {sizes}"
        logger.warning("%s: left out", message)
        words = failure_text(message, "Ask it for less, or raise limits.result_bytes")
        return {"content": [{"type": "text", "text": words}], "isError": True}

    # -- resources -----------------------------------------------------------------------------------------------------

    async def _read(self, params: Mapping[str, Any], caller: Caller, profile: Profile) -> dict[str, Any]:
        uri = params.get("uri")
        if not isinstance(uri, str) or not uri:
            raise InvalidRequest("resources/read needs the uri of a resource")
        if uri.startswith(URI_SCHEME):
            return await self._builtin.request("resources/read", {"uri": uri}, owner=caller.principal, profile=profile)
        if self._resources.owner(uri) is None:
            await self._availability.first(profile.name, profile.wait.tools_list)
        return await self._resources.read(uri, onward(params))


def _refuse_cursor(params: Mapping[str, Any]) -> None:
    if params.get("cursor") is not None:
        raise InvalidRequest("there is no further page", remedy="ask without a cursor: the whole list is one page")

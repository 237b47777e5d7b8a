"""Calls of tools: to whoever has the tool, and the result in the shape that the host shows best."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from anyio import to_thread

from gateway.config.schema import Settings, Timeouts
from gateway.content.media.share import media_share
from gateway.content.shaping import Reach
from gateway.core import apps
from gateway.core.model.caller import Caller
from gateway.core.model.json_shape import MANY_VALUES, Size, size_of
from gateway.core.model.json_values import as_list, is_object, objects_in
from gateway.core.model.notes import Note
from gateway.core.profiles.calibrating import TOOLS as CALIBRATING_TOOLS
from gateway.core.profiles.host_profiles import narrow
from gateway.core.profiles.profile import Profile
from gateway.core.results.lifting import lift
from gateway.core.tools.catalogue import OWN, Route
from gateway.core.wording import failure_text, plain, size_words
from gateway.errors import InvalidRequest
from gateway.routing.checking import ArgumentChecks
from gateway.routing.keeping import keeping_alive
from gateway.routing.named_files import with_named_files
from gateway.routing.offering import Offering
from gateway.routing.pages import OpenPages
from gateway.routing.ports import AShaper, Calibrating, OwnTools, ReadResource, TheArguments, TheUpstreams
from gateway.routing.reaching import reach
from gateway.routing.resolving import WithContent
from gateway.routing.resources import Resources
from gateway.routing.tasks import TASK, Tasks
from gateway.telemetry import Telemetry
from gateway.telemetry.calls import Call
from gateway.upstream import Host, ProgressCallback
from gateway.upstream.bridging.asking import INPUT_REQUIRED
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.connection.owners import host_of

logger = logging.getLogger(__name__)

_AS_IT_IS = Profile(name="passthrough")


@dataclass(frozen=True)
class Asking:
    """Who calls, and how to reach its host while the call runs. Profiles are asked anew: they may change meanwhile.

    `profile` is the one for the result, `listed` the one that the host was offered its tools by; `read` reads resources
    in the caller's own sessions.
    """

    caller: Caller
    profile: Callable[[], Profile]
    listed: Callable[[], Profile]
    read: ReadResource
    on_progress: ProgressCallback | None = None
    host: Host | None = None


class Calls:
    """Answers `tools/call`."""

    def __init__(
        self,
        upstreams: TheUpstreams,
        builtin: OwnTools,
        bridge: Bridge,
        offering: Offering,
        resources: Resources,
        telemetry: Telemetry,
        shaper: AShaper,
        settings: Settings,
        opened: OpenPages,
        calibration: Calibrating | None = None,
        arguments: TheArguments | None = None,
    ) -> None:
        self._upstreams = upstreams
        self._builtin = builtin
        self._bridge = bridge
        self._offering = offering
        self._resources = resources
        self._telemetry = telemetry
        self._opened = opened
        self._tasks = Tasks()
        self._checks = ArgumentChecks()
        self._shaper = shaper
        self._settings = settings
        self._calibration = calibration
        self._arguments = arguments

    def reconfigure(self, settings: Settings, shaper: AShaper) -> None:
        """Take over other settings; calls that are running go on with what they began with."""
        self._settings, self._shaper = settings, shaper
        if self._arguments is not None:
            self._arguments.reconfigure(settings.limits)

    async def call(self, params: Mapping[str, Any], asking: Asking) -> dict[str, Any]:
        """The shaped result; to a host of 2026-07-28 also one that asks for input.

        Raises:
            InvalidRequest: malformed, or no such tool.
            UpstreamError: whoever was asked could not answer.
        """
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str):
            raise InvalidRequest("tools/call needs the name of a tool")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise InvalidRequest("the arguments of a tool must be an object")
        with self._telemetry.call(asking.caller, asking.profile().name, name, params) as call:
            call.asked(params.get("arguments"), (await _size(params.get("arguments") or {})).characters)
            with media_share(host_of(asking.caller), is_result=True):
                return await self._done(call, name, params, asking)

    async def task(self, method: str, params: Mapping[str, Any], asking: Asking) -> dict[str, Any]:
        """What the upstream says of a task that it has given this caller; its result, once there, shaped as a call's.

        Raises:
            InvalidRequest: malformed, or no task of this caller.
            UpstreamError: the upstream could not answer.
        """
        task_id = params.get("taskId")
        if not isinstance(task_id, str):
            raise InvalidRequest(f"{method} needs the id of a task")
        route = self._tasks.route(task_id, asking.caller)
        upstream = self._upstreams[route.upstream]
        state = await self._bridge.request(
            upstream, method, params, timeout=upstream.settings.timeout, caller=asking.caller, host=asking.host
        )
        result = state.get("result")
        if not is_object(result):
            return state
        named = replace(route, tool=f"task {plain(task_id, 100)}")
        size = await _size(result)
        whole = await _outward(route, self._within_limit(result, size, named), size)
        if route.audience == "app":
            return {**state, "result": self._as_it_came(whole, route, asking.caller)}
        if route.shows_page:
            self._opened.add(route.upstream, asking.caller)
        await self._offering.prepare(asking.profile(), asking.caller)
        profile, app = self._profile(asking), route.audience == "both"
        whole, notes = await self._with_named_files(whole, route)
        within, owner = self._reach(route.upstream, asking), asking.caller.principal
        with media_share(host_of(asking.caller), is_result=True):
            shaped = await self._shaper.shape(
                whole, profile, owner=owner, notes=notes, reach=within, origin=route.upstream, app=app
            )
        self._resources.remember(route.upstream, shaped.envelope, asking.caller)
        return {**state, "result": shaped.result}

    async def _done(self, call: Call, name: str, params: Mapping[str, Any], asking: Asking) -> dict[str, Any]:
        route = await self._offering.route(name, asking.listed, asking.caller)
        call.routed(route.upstream, route.tool)
        await self._offering.prepare(asking.profile(), asking.caller)
        shaper, profile = self._shaper, self._profile(asking)
        passed = {**params, "name": route.tool}
        if passed.get("arguments") is None:
            passed.pop("arguments", None)
        # The tasks of 2025-11-25 are not carried, so an upstream must not be asked to make the call one.
        passed.pop("task", None)
        original = self._offering.catalogue(asking.listed(), asking.caller).originals.get(name)
        refused = self._checks.refusal(name, original, passed.get("arguments"))
        raw = refused or await self._asked(route, passed, asking, profile)
        size = await _size(raw)
        call.answered(size.characters)
        if raw.get("resultType") in (INPUT_REQUIRED, TASK):
            if raw["resultType"] == TASK:
                self._tasks.remember(raw, route, asking.caller)
            call.shaped(raw, size.characters, (), is_error=False)
            return raw
        bounded = await _outward(route, self._within_limit(raw, size, route), size)
        if route.audience == "app":  # no model reads it, so there is nobody to shape it for
            call.shaped(bounded, size.characters, (apps.AS_IT_CAME,), is_error=bounded.get("isError") is True)
            return self._as_it_came(bounded, route, asking.caller)
        if route.shows_page:
            self._opened.add(route.upstream, asking.caller)
        whole, notes = await self._with_named_files(bounded, route)
        if self._calibrates(route):  # the host is what is measured, so nothing may be changed for it
            profile = narrow(_AS_IT_IS, asking.caller.revision)
        within, owner = self._reach(route.upstream, asking), asking.caller.principal
        shaped = await shaper.shape(
            whole,
            profile,
            owner=owner,
            notes=notes,
            reach=within,
            origin=route.upstream,
            app=route.audience == "both",
        )
        if route.upstream != OWN:
            self._resources.remember(route.upstream, shaped.envelope, asking.caller)
        given = (await _size(shaped.result)).characters
        call.shaped(shaped.result, given, shaped.notes, is_error=shaped.envelope.is_error)
        return shaped.result

    async def _asked(self, route: Route, params: Mapping[str, Any], asking: Asking, profile: Profile) -> dict[str, Any]:
        if self._calibration is not None and self._calibrates(route):
            arguments = cast("Mapping[str, Any]", params.get("arguments") or {})
            return await self._calibration.call(route.tool, arguments, asking.caller, profile)
        if route.upstream == OWN:
            owner = asking.caller.principal
            return await self._builtin.request("tools/call", params, owner=owner, profile=profile, read=asking.read)
        upstream = self._upstreams[route.upstream]
        if route.parameters and self._arguments is not None:
            upstream = WithContent(upstream, route, self._arguments)
        async with keeping_alive(asking.on_progress, profile.wait.progress_every) as on_progress:
            return await self._bridge.request(
                upstream,
                "tools/call",
                params,
                timeout=self._limits(route),
                on_progress=on_progress,
                caller=asking.caller,
                host=asking.host,
            )

    def _profile(self, asking: Asking) -> Profile:
        """The profile that a result is shaped by, with what only this caller decides."""
        profile, caller = asking.profile(), asking.caller
        shows_apps = apps.shows_apps(caller.capabilities, profile.apps.host)
        return apps.for_host(self._offering.naming(profile, caller), shows_apps=shows_apps)

    def _reach(self, upstream: str, asking: Asking) -> Reach:
        named = None if upstream == OWN else upstream
        return reach(self._bridge, self._upstreams, named, asking.profile(), asking.caller, asking.host)

    async def _with_named_files(
        self, raw: Mapping[str, Any], route: Route
    ) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
        settings = None if route.upstream == OWN else self._upstreams[route.upstream].settings
        if settings is None or not settings.files or settings.command is None:
            return raw, ()
        return await to_thread.run_sync(with_named_files, raw, settings.files, settings.cwd)

    def _as_it_came(self, result: Mapping[str, Any], route: Route, caller: Caller) -> dict[str, Any]:
        """A result for a page alone. What it names is kept in mind, as of every other result."""
        content = result.get("content")
        blocks = as_list(content)
        blocks = blocks[: self._settings.limits.blocks]
        # Without their bytes: nothing of them is looked at here.
        links = [{"type": "resource_link", "name": "", "uri": uri} for uri in _named(blocks)]
        if links:
            self._resources.remember(route.upstream, lift({"content": links}), caller)
        return dict(result)

    def _calibrates(self, route: Route) -> bool:
        return route.upstream == OWN and route.tool in CALIBRATING_TOOLS

    def _limits(self, route: Route) -> Timeouts:
        settings = self._upstreams[route.upstream].settings
        special = settings.tools.timeout.get(route.tool)
        return (
            settings.timeout.model_copy(update=special.model_dump(exclude_none=True)) if special else settings.timeout
        )

    def _within_limit(self, raw: Mapping[str, Any], size: Size, route: Route) -> Mapping[str, Any]:
        limit = self._settings.limits.result_bytes
        if size.total <= limit:
            return raw
        sizes = f"{size_words(size.total)}, and a result may have {size_words(limit)}"
        message = f"{plain(route.tool, 100)} of {route.upstream} returned {sizes}"
        logger.warning("%s: left out", message)
        words = failure_text(message, "Ask it for less, or raise limits.result_bytes")
        return {"content": [{"type": "text", "text": words}], "isError": True}


def _named(blocks: list[Any]) -> list[str]:
    """The uris that blocks of a result name: of links, and of embedded resources."""
    objects = objects_in(blocks)
    resources = [block.get("resource") for block in objects if block.get("type") == "resource"]
    embedded = objects_in(resources)
    links = [block for block in objects if block.get("type") == "resource_link"]
    return [uri for each in (*links, *embedded) if isinstance(uri := each.get("uri"), str)]


async def _size(value: Any) -> Size:
    """The size of a JSON value; counted in a thread when it has many values."""
    size = size_of(value, most_values=MANY_VALUES)
    return size if size.is_whole else await to_thread.run_sync(size_of, value)


async def _outward(route: Route, result: Mapping[str, Any], size: Size) -> Mapping[str, Any]:
    """The result with the uris of pages as hosts know them; in a thread when it has many values."""
    if size.values > MANY_VALUES:
        return await to_thread.run_sync(apps.outward_result, route.upstream, result)
    return apps.outward_result(route.upstream, result)

"""Results of tool calls as hosts get them: within the limit of size, shaped, and their resources remembered."""

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from anyio import to_thread

from gateway.config.schema import Settings
from gateway.core import apps
from gateway.core.fact_words import plain, size_words
from gateway.core.model.caller import Caller
from gateway.core.model.json_size import MANY_VALUES, Size
from gateway.core.model.json_values import as_list, objects_in
from gateway.core.model.notes import Note
from gateway.core.model.wire import text_result
from gateway.core.profiles.calibrate_profile import TOOLS as CALIBRATING_TOOLS
from gateway.core.profiles.host_profiles import narrow, with_useful_handles
from gateway.core.profiles.profile import Profile
from gateway.core.results.decisions import Accepts
from gateway.core.results.lift_result import lift
from gateway.core.tokens import Lengths
from gateway.core.tools.catalogue import OWN, Catalogue, Route
from gateway.core.wording import failure_text
from gateway.routing.files import FileTransfersPort, with_files
from gateway.routing.named_files import with_named_files
from gateway.routing.pages import OpenPages
from gateway.routing.ports import ShaperPort, UpstreamsPort
from gateway.routing.resources import Resources
from gateway.routing.result_context import reach
from gateway.routing.token_counts import TokenCounts
from gateway.upstream import RequestContext
from gateway.upstream.bridging.bridge import Bridge
from gateway.upstream.connection.request_context import EVERYTHING_AS_IT_IS

logger = logging.getLogger(__name__)

_PROFILES = 512
"""Maximum number of adjusted profiles that are remembered."""


class HostResult(NamedTuple):
    """A result for a host, the notes of what was changed in it, whether it is an error, and its media's lengths."""

    result: dict[str, Any]
    notes: Sequence[Note]
    is_error: bool
    lengths: Lengths = MappingProxyType({})


class HostResults:
    """Makes of raw results what their hosts get."""

    def __init__(
        self,
        upstreams: UpstreamsPort,
        bridge: Bridge,
        resources: Resources,
        opened: OpenPages,
        shaper: ShaperPort,
        settings: Settings,
        files: FileTransfersPort | None = None,
    ) -> None:
        self._upstreams = upstreams
        self._bridge = bridge
        self._resources = resources
        self._opened = opened
        self._files = files
        self._settings = settings
        self.shaper = shaper
        self.tokens = TokenCounts(settings.gateway.model)
        self._adjusted: dict[tuple[int, bool, bool], tuple[Profile, Profile]] = {}

    def reconfigure(self, settings: Settings, shaper: ShaperPort) -> None:
        """Apply changed settings."""
        self._settings, self.shaper = settings, shaper
        self.tokens = TokenCounts(settings.gateway.model)
        self._adjusted.clear()

    def profile_for(self, context: RequestContext, catalogue: Catalogue) -> Profile:
        """Return the profile to shape a result by, adjusted to this host; see `_adjusted`."""
        profile, takes_content = context.profile, catalogue.takes_content
        shows_apps = apps.shows_apps(context.caller.capabilities, profile.apps.host)
        # Keyed by identity: the profile is kept beside what was made of it, so no other one can get the same id.
        key = (id(profile), shows_apps, takes_content)
        kept = self._adjusted.get(key)
        if kept is None:
            if len(self._adjusted) >= _PROFILES:
                self._adjusted.clear()
            kept = self._adjusted[key] = profile, _adjusted(profile, shows_apps=shows_apps, takes_content=takes_content)
        return kept[1]

    def within_limit(self, raw: Mapping[str, Any], size: Size, route: Route, what: str) -> Mapping[str, Any]:
        limit = self._settings.limits.result_bytes
        if size.total <= limit:
            return raw
        sizes = f"{size_words(size.total)}, and a result may have {size_words(limit)}"
        message = f"{plain(what, 100)} of {route.upstream} returned {sizes}"
        logger.warning("%s: left out", message)
        words = failure_text(message, "Ask it for less, or raise limits.result_bytes")
        return text_result(words, is_error=True)

    async def for_host(
        self,
        result: Mapping[str, Any],
        route: Route,
        context: RequestContext,
        profile: Profile,
        shaper: ShaperPort,
        accepts: Accepts,
        size: Size | None = None,
    ) -> HostResult:
        """Return a tool's result as its host gets it, and remember the resources that it names for later requests.

        `accepts` says whether structured content fits the output schema that the host knows; `size` is the result's, if
        it is known.
        """
        if route.audience == "app":  # no model reads it, so it needs no shaping
            is_error = result.get("isError") is True
            return HostResult(self._as_it_came(result, route, context.caller), (apps.AS_IT_CAME,), is_error)
        if route.shows_page:
            self._opened.add(route.upstream, context.caller)
        whole, notes = await self._with_named_files(result, route)
        if calibrates(route):  # the host itself is measured, so the result must stay unchanged
            profile = narrow(EVERYTHING_AS_IT_IS, context.caller.revision)
        shaped = await shaper.shape(
            whole,
            profile if context.within else self._with_tokens(profile, route, context.caller.model),
            owner=context.caller.principal,
            notes=notes,
            reach=reach(self._bridge, self._upstreams, None if route.upstream == OWN else route.upstream, context),
            origin=route.upstream,
            app=route.audience == "both",
            size=size if whole is result else None,
            accepts=accepts,
        )
        if route.upstream != OWN:
            self._resources.remember(route.upstream, shaped.envelope, context.caller)
        told = shaped.result
        if self._files is not None:
            told = await with_files(told, shaped.kept, self._files, context.caller)
        return HostResult(told, shaped.notes, shaped.envelope.is_error, shaped.lengths)

    async def _with_named_files(
        self, raw: Mapping[str, Any], route: Route
    ) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
        settings = None if route.upstream == OWN else self._upstreams[route.upstream].settings
        if settings is None or not settings.files or settings.command is None:
            return raw, ()
        return await to_thread.run_sync(with_named_files, raw, settings.files, settings.cwd)

    def _as_it_came(self, result: Mapping[str, Any], route: Route, caller: Caller) -> dict[str, Any]:
        """Return a result for a page unchanged, and remember the resources that it names."""
        content = result.get("content")
        blocks = as_list(content)
        blocks = blocks[: self._settings.limits.blocks]
        # Only the URIs matter here, so the blocks go in without their bytes.
        links = [{"type": "resource_link", "name": "", "uri": uri} for uri in _named(blocks)]
        if links:
            self._resources.remember(route.upstream, lift({"content": links}), caller)
        return dict(result)

    def _with_tokens(self, profile: Profile, route: Route, model: str | None) -> Profile:
        """Return the profile with the budget in tokens of this tool, by the formulas of the model if it is known."""
        special = None if route.upstream == OWN else self._upstreams[route.upstream].settings
        most = special.tools.max_tokens.get(route.tool) if special is not None and special.tools.max_tokens else None
        if most is None and profile.tokens.max_result is None:
            return profile
        formulas = tuple(formula.name for formula in self.tokens.formulas(profile, model))
        tokens = {"max_result": most or profile.tokens.max_result, "formulas": formulas}
        return profile.model_copy(update={"tokens": profile.tokens.model_copy(update=tokens)})


def calibrates(route: Route) -> bool:
    """Whether it leads to a calibration tool: the host itself is measured then."""
    return route.upstream == OWN and route.tool in CALIBRATING_TOOLS


def _adjusted(profile: Profile, *, shows_apps: bool, takes_content: bool) -> Profile:
    """Return a profile adjusted to a host's support for pages, and to the tools that it is offered."""
    return apps.for_host(with_useful_handles(profile, takes_content=takes_content), shows_apps=shows_apps)


def _named(blocks: list[Any]) -> list[str]:
    """The URIs of the links and embedded resources among the blocks of a result."""
    objects = objects_in(blocks)
    resources = [block.get("resource") for block in objects if block.get("type") == "resource"]
    embedded = objects_in(resources)
    links = [block for block in objects if block.get("type") == "resource_link"]
    return [uri for each in (*links, *embedded) if isinstance(uri := each.get("uri"), str)]


async def with_outward_uris(route: Route, result: Mapping[str, Any], size: Size) -> Mapping[str, Any]:
    """Return the result with the URIs of pages as hosts know them, rewritten in a thread if it has many values."""
    if size.values > MANY_VALUES:
        return await to_thread.run_sync(apps.outward_result, route.upstream, result)
    return apps.outward_result(route.upstream, result)

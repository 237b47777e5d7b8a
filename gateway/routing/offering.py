"""What is offered to whom: catalogues per profile, revision and what the upstreams list for the host."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from gateway.config.schema import GatewaySettings
from gateway.core.catalogue import OWN, Catalogue, Route, build
from gateway.core.catalogue.names import SEPARATOR, NameRules
from gateway.core.model.caller import REVISIONS, Caller
from gateway.core.model.profile import Profile
from gateway.core.model.wire import WireObject
from gateway.core.wording import plain
from gateway.errors import GatewayError, UnknownTool
from gateway.routing.availability import Availability
from gateway.routing.ports import Calibrating, OwnTools, TheArguments, TheUpstreams
from gateway.routing.reporting import Problems
from gateway.upstream import UpstreamState

ProfileNow = Callable[[], Profile]
"""Gives the profile in force for one caller."""

_Tools = Mapping[str, Sequence[WireObject]]
"""The raw tools of each upstream."""

logger = logging.getLogger(__name__)

_LONGEST_NAME = 200
_COMPARED = 500
"""How many names are compared with one that is unknown: comparing costs, and strangers choose the name."""
_KEPT = 128
"""How many catalogues are kept, the last used: an upstream may list other tools for hosts of other capabilities."""


class Offering:
    """The catalogues in force, and the way from an offered name to its upstream."""

    def __init__(
        self,
        upstreams: TheUpstreams,
        own: OwnTools,
        settings: GatewaySettings,
        availability: Availability,
        calibration: Calibrating | None = None,
        arguments: TheArguments | None = None,
    ) -> None:
        self._upstreams = upstreams
        self._own = own
        self._settings = settings
        self._availability = availability
        self._calibration = calibration
        self._arguments = arguments
        self._catalogues: OrderedDict[tuple[object, ...], tuple[_Tools, Catalogue]] = OrderedDict()
        self._schemas: dict[str, Mapping[str, Any]] = {}
        self._problems = Problems()

    def reconfigure(self, settings: GatewaySettings) -> None:
        """Offer by other settings from now on."""
        self._settings = settings
        self.forget()

    def forget(self) -> None:
        """An upstream's list or state changed: the next question builds its catalogue anew."""
        self._catalogues.clear()
        self._schemas.clear()

    def catalogue(self, profile: Profile, caller: Caller) -> Catalogue:
        """What a caller is offered now. `profile` is its own, narrowed to its revision already."""
        lists = {name: self._upstreams[name].lists_for(caller).tools for name in self._upstreams}
        revision = caller.revision if caller.revision in REVISIONS else REVISIONS[0]
        # By the very lists, which are kept beside the catalogue: so no other list can come to have the same id.
        calibrating = () if self._calibration is None else self._calibration.tools(caller, profile)
        key = (profile.name, revision, len(calibrating), *((name, id(tools)) for name, tools in lists.items()))
        found = self._catalogues.get(key)
        if found is None:
            found = self._catalogues[key] = (lists, self._built(lists, calibrating, profile, revision))
            self._schemas.update((tool["name"], tool["inputSchema"]) for tool in found[1].tools)
            self._report(found[1], profile.name)
            while len(self._catalogues) > _KEPT:
                self._catalogues.popitem(last=False)
        self._catalogues.move_to_end(key)
        return found[1]

    def naming(self, profile: Profile, caller: Caller) -> Profile:
        """The profile with handles named `always` where that is `useful`: where a tool is offered that takes one."""
        if profile.handles != "useful" or not self.catalogue(profile, caller).takes_content:
            return profile
        return profile.model_copy(update={"handles": "always"})

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool that was offered to anybody under this name; None when none was."""
        return self._schemas.get(name)

    async def route(self, name: str, profile_now: ProfileNow, caller: Caller) -> Route:
        """Where a call of `name` goes. Waits, within the profile's bound, for an upstream that may bring it yet.

        `profile_now` is asked again after waiting: the profiles may be others then.

        Raises:
            UpstreamUnavailable: the name is one of an upstream that is not there.
            UnknownTool: it is nobody's.
        """
        profile = profile_now()
        route = self.catalogue(profile, caller).routes.get(name)
        if route is not None:
            return route
        owner = self._owner(name, profile)
        starting = self._availability.starting()
        awaited = [owner] if owner in starting else starting if owner is None else []
        if awaited:
            await self._availability.wait(awaited, profile.wait.tools_list)
            profile = profile_now()
            route = self.catalogue(profile, caller).routes.get(name)
            if route is not None:
                return route
        raise self._unknown(name, self._owner(name, profile), profile, caller)

    def _built(self, lists: _Tools, calibrating: Sequence[WireObject], profile: Profile, revision: str) -> Catalogue:
        own = (*(self._own.tools() if profile.tools.helpers else ()), *calibrating)
        if own:
            lists = {OWN: own, **lists}
        settings = {name: self._upstreams[name].settings for name in self._upstreams}
        arguments = self._arguments
        return build(
            lists,
            {name: upstream.tools for name, upstream in settings.items()},
            self._settings.prefix,
            profile,
            self._settings.name,
            revision=revision,
            giving={name: arguments.giving(settings[name]) for name in settings} if arguments else None,
        )

    def _report(self, catalogue: Catalogue, profile: str) -> None:
        logger.debug("profile %s: %d tools, %d notes", profile, len(catalogue.tools), len(catalogue.notes))
        self._problems.report((note.text for note in catalogue.problems), f"tools for profile {profile}")

    def _owner(self, name: str, profile: Profile) -> str | None:
        """The upstream that a prefixed name belongs to, if it begins with one's prefix."""
        rules = NameRules.of(profile.tools, self._settings.name)
        return next((own for own in self._upstreams if name.startswith(rules.legal(own) + SEPARATOR)), None)

    def _unknown(self, name: str, owner: str | None, profile: Profile, caller: Caller) -> GatewayError:
        shown = plain(name, _LONGEST_NAME)
        if owner is not None and self._upstreams[owner].state is not UpstreamState.READY:
            return self._availability.unavailable(owner, f"tool {shown!r}")
        routes = self.catalogue(profile, caller).routes
        likely = [offered for offered, route in routes.items() if route.upstream == owner] or list(routes)
        near = get_close_matches(shown, likely[:_COMPARED], n=3)
        hint = f"; the nearest: {', '.join(repr(match) for match in near)}" if near else ""
        absent = self._availability.missing()
        why = f"; not there now: {', '.join(absent)}" if absent else ""
        return UnknownTool(f"no tool is named {shown!r}{hint}{why}", remedy="list the tools again")
